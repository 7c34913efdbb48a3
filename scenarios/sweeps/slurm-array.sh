#!/usr/bin/env bash
# A sweep as a Slurm job array: every task computes its share of the rows into a file of its own.
#
#   sbatch --array=1-16 slurm-array.sh SWEEP.yaml ROWS_FOLDER
#   routesim sweep --merge ROWS_FOLDER/shard-*.jsonl --output jsonl=rows.jsonl
#
# routesim reads its share from SLURM_ARRAY_TASK_ID and its companions. A task that is requeued, or
# submitted again, goes on where it was stopped. ROUTESIM names the program when it is not in PATH.
#SBATCH --job-name=routesim-sweep
#SBATCH --array=1-8
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

sweep=${1:?usage: sbatch slurm-array.sh SWEEP.yaml ROWS_FOLDER}
folder=${2:?usage: sbatch slurm-array.sh SWEEP.yaml ROWS_FOLDER}
mkdir -p "$folder"
exec "${ROUTESIM:-routesim}" sweep "$sweep" --resume --jobs "${SLURM_CPUS_PER_TASK:-1}" \
  --output "jsonl=$folder/shard-$SLURM_ARRAY_TASK_ID.jsonl"
