#!/usr/bin/env bash
# A sweep as a Slurm job array: every task computes its share of the rows into a file of its own.
#
#   sbatch --array=1-16 slurm-array.sh SWEEP.yaml ROWS_FOLDER 16
#   sbatch --array=2,7 slurm-array.sh SWEEP.yaml ROWS_FOLDER 16      # two lost tasks, once more
#   routesim sweep --merge ROWS_FOLDER/shard-*.jsonl --output jsonl=rows.jsonl
#
# The third argument is the number of tasks of the whole array. Slurm only knows the array that was
# submitted, and a lost task that is submitted alone is an array of one. A task that is requeued, or
# submitted again, goes on where it was stopped. ROUTESIM names the program when it is not in PATH.
#SBATCH --job-name=routesim-sweep
#SBATCH --array=1-8
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

usage='usage: sbatch --array=1-TASKS slurm-array.sh SWEEP.yaml ROWS_FOLDER TASKS'
sweep=${1:?$usage}
folder=${2:?$usage}
tasks=${3:?$usage}
mkdir -p "$folder"
exec "${ROUTESIM:-routesim}" sweep "$sweep" --resume --jobs "${SLURM_CPUS_PER_TASK:-1}" \
  --shard "$SLURM_ARRAY_TASK_ID/$tasks" --output "jsonl=$folder/shard-$SLURM_ARRAY_TASK_ID.jsonl"
