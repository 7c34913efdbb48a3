"""The types of `RunResult.raw`. Generated from docs/reference/result.schema.json by
tools/python/generate_result_types.py. Do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired


Distribution = dict[str, float]


PromptTokens = dict[str, float]


OutputTokens = dict[str, float]


GoodputMetrics = dict[str, float]


class Command(TypedDict):
    """The arguments that decide what is run."""

    #: The scenario and its --set options, as given.
    input: str
    #: The --variant options.
    variants: str
    #: The other options that decide what is run.
    options: str
    #: The options of a scan: --rate and --replicas.
    scan: str


class LoadSummary(TypedDict):
    """The requests that were sent, as inference-perf counts them."""

    #: Requests sent.
    count: int
    #: Due time to send, s: how late the load tool itself was. Null when there is no value.
    schedule_delay: Distribution | None
    #: First send to last send, s.
    send_duration: float
    #: What the stage asked for, requests/s; null when all are sent at once.
    requested_rate: float | None
    #: count / send_duration, requests/s; null when all were sent at once.
    achieved_rate: float | None
    #: Requests that the stage keeps in flight, where it is driven by concurrency.
    concurrency: NotRequired[int]


class Latency(TypedDict):
    """Latencies of successful requests as the client sees them, s."""

    #: Send to last token, s. Null when there is no value.
    request_latency: Distribution | None
    #: (end - send) / output tokens, s; one value per request. Null when there is no value.
    normalized_time_per_output_token: Distribution | None
    #: (end - first token) / (output tokens - 1), s; one value per request with at least two
    #: tokens. Null when there is no value.
    time_per_output_token: Distribution | None
    #: Send to first token, s. Null without streaming, and when there is no value.
    time_to_first_token: Distribution | None
    #: Gap between two consecutive tokens, s, all pooled. Null when there is no value.
    inter_token_latency: Distribution | None


class Throughput(TypedDict):
    """Per second of the time from the first send to the last end."""

    #: Prompt tokens of successful requests, tokens/s.
    input_tokens_per_sec: float
    #: Output tokens of successful requests, tokens/s.
    output_tokens_per_sec: float
    #: Both together, tokens/s.
    total_tokens_per_sec: float
    #: Successful requests, requests/s.
    requests_per_sec: float


class Successes(TypedDict):
    """Requests that received all of their output."""

    #: Requests.
    count: int
    latency: Latency
    throughput: Throughput
    #: Tokens per prompt; an older name of what prompt_tokens holds. Null when there is no value.
    prompt_len: Distribution | None
    prompt_tokens: PromptTokens
    output_tokens: OutputTokens
    #: Tokens per answer; an older name of what output_tokens holds. Null when there is no value.
    output_len: Distribution | None
    goodput_metrics: NotRequired[GoodputMetrics]


class ByLabel(TypedDict):
    """By reason."""

    #: Requests.
    count: int
    #: Always empty.
    messages: list[str]


class Failures(TypedDict):
    """Requests that timed out, were refused, or were longer than the engine accepts."""

    #: Requests.
    count: int
    #: Always null: failed requests have no latency here.
    request_latency: Distribution | None
    #: Always null.
    prompt_tokens: Distribution | None
    #: By reason.
    by_label: dict[str, ByLabel]


class Usage(TypedDict):
    """Share of the KV blocks in use, 0 to 1."""

    #: Over servers and time. Null of a stage that was interrupted.
    mean: float | None
    #: The largest at any time.
    max: float


class SteadyState(TypedDict):
    """Whether it shows what its load would do without end."""

    #: steady: no queue grows. growing: overloaded. too-short: it ends before it tells.
    state: Literal["steady", "growing", "too-short"]
    #: Seconds for which it should send to tell. Absent where it tells.
    telling_s: NotRequired[float]


class Quantiles(TypedDict):
    """Latencies at each of quantile_levels, s. Null when there is no value."""

    #: Send to first token, s.
    time_to_first_token: list[float] | None
    #: Gap between two tokens, s.
    inter_token_latency: list[float] | None
    #: Mean gap of a request, s.
    time_per_output_token: list[float] | None
    #: Send to last token, s.
    request_latency: list[float] | None


class Goodput(TypedDict):
    """Requests that succeeded within every goal of goodput_goals. Of traffic classes only the
    loads of a mix have it."""

    #: Requests within all goals.
    good_requests: int
    #: Requests sent.
    sent_requests: int
    #: good_requests / sent_requests, %; null when none was sent.
    percentage: float | None
    #: Good requests, requests/s.
    requests_per_sec: float
    #: Their output tokens, tokens/s.
    output_tokens_per_sec: float


class Measured(TypedDict):
    """Published numbers of this stage. Absent when the scenario has none."""

    #: Name of the metric, as in docs/metrics.md.
    metric: str
    #: mean, p90 and so on; empty where there is one value.
    statistic: str
    #: In base units: s, tokens/s, requests/s.
    value: float
    #: Where it was published.
    source: str


class Stage(TypedDict):
    """The stages of the load, warm-up stages included."""

    #: Number or name of the stage, or name of the class.
    name: str
    #: Part of the summary; warm-up stages are not.
    reported: bool
    #: The load that has the stage. Absent where there is no mix.
    part: NotRequired[str]
    #: First send to the end of the last request, s.
    benchmark_time_seconds: float
    load_summary: LoadSummary
    successes: Successes
    failures: Failures
    #: Prompt tokens from caches / prompt tokens of successful requests, 0 to 1.
    prefix_hit_ratio: float
    kv_cache_usage: Usage
    #: Requests thrown out of a batch for lack of KV blocks; each counts every time.
    preemptions: int
    #: The queue grows until the stage ends, so latencies depend on how long it lasts.
    overloaded: bool
    steady_state: NotRequired[SteadyState]
    quantiles: Quantiles
    goodput: NotRequired[Goodput]
    #: Published numbers of this stage. Absent when the scenario has none.
    measured: NotRequired[list[Measured]]


class SummaryLoadSummary(TypedDict):
    """The requests that were sent, as inference-perf counts them."""

    #: Requests sent.
    count: int
    #: Due time to send, s: how late the load tool itself was. Null when there is no value.
    schedule_delay: Distribution | None


class Summary(TypedDict):
    """The whole run: the requests of all reported stages, pooled."""

    #: First send to the end of the last request, s.
    benchmark_time_seconds: float
    load_summary: SummaryLoadSummary
    successes: Successes
    failures: Failures
    #: Prompt tokens from caches / prompt tokens of successful requests, 0 to 1.
    prefix_hit_ratio: float
    kv_cache_usage: Usage
    #: Requests thrown out of a batch for lack of KV blocks; each counts every time.
    preemptions: int
    #: The queue grows until the stage ends, so latencies depend on how long it lasts.
    overloaded: bool
    #: The offered rate: requests / first to last send, /s.
    requests_per_sec_sent: NotRequired[float]
    quantiles: Quantiles
    goodput: NotRequired[Goodput]


class TrafficClass(TypedDict):
    """The requests of one traffic class, of the reported stages."""

    #: Number or name of the stage, or name of the class.
    name: str
    #: First send to the end of the last request, s.
    benchmark_time_seconds: float
    load_summary: SummaryLoadSummary
    successes: Successes
    failures: Failures
    #: Prompt tokens from caches / prompt tokens of successful requests, 0 to 1.
    prefix_hit_ratio: float
    #: Requests thrown out of a batch for lack of KV blocks; each counts every time.
    preemptions: int
    quantiles: Quantiles
    goodput: NotRequired[Goodput]
    #: Latency goals that good requests of this load meet: bounds, s. Absent without a mix.
    goodput_goals: NotRequired[dict[str, float]]


class Gateway(TypedDict):
    """What the proxy in front of the servers did."""

    #: Requests refused by a limit.
    refused: int
    #: Attempts made again.
    retries: int
    #: Retries refused by the retry budget.
    retries_refused: int
    #: Requests that waited for a connection or a slot.
    waited: int
    #: Longest such wait, s.
    max_wait_s: float
    #: Most requests in flight to one server.
    max_in_flight: int
    #: Most requests that waited at a time.
    max_waiting: int


class Routing(TypedDict):
    """What the router decided in the whole run."""

    #: Prompt tokens that engines found cached / prompt tokens, of all requests routed.
    prefix_hit_ratio: float
    #: Requests decided about.
    decisions: int
    #: Requests refused by the router.
    rejected: int
    #: Cached tokens the router expected where it sent the requests.
    predicted_hit_tokens: int
    #: Cached tokens the engines found.
    hit_tokens: int
    #: Tokens of all prompts routed.
    prompt_tokens: int
    #: Requests sent through a prefill server.
    disaggregated: int
    #: Mean wait in the router's own queue, s. Absent without one.
    mean_wait_s: NotRequired[float]
    #: Longest such wait, s.
    max_wait_s: NotRequired[float]
    #: The most that its processes decide in a second. Absent without one.
    decisions_per_s: NotRequired[float]
    gateway: NotRequired[Gateway]
    #: Mean regret of a decision against the omniscient one, client-seconds. With --regret.
    mean_regret_s: NotRequired[float]


class Waits(TypedDict):
    """Waits for copies between KV tiers."""

    #: Waits.
    count: int
    #: Mean, s.
    mean: float
    #: Longest, s.
    max: float


class LinkUse(TypedDict):
    """Bytes moved / bytes that could have been moved, 0 to 1."""

    #: The bus from host to GPU memory.
    to_gpus: float
    #: The bus back.
    to_host: float
    #: Host memory.
    host_memory: float
    #: The network card, sending.
    nic_out: float
    #: The network card, receiving.
    nic_in: float


class KvTiers(TypedDict):
    """KV tiers beside GPU memory, whole run, unreported stages included."""

    #: hit_tokens / hbm_query_tokens.
    hit_ratio: float
    #: Prompt tokens looked up in GPU memory.
    hbm_query_tokens: int
    #: Prompt tokens found there.
    hbm_hit_tokens: int
    #: Prompt tokens looked up in the tiers.
    query_tokens: int
    #: Prompt tokens loaded from the tiers.
    hit_tokens: int
    #: Requests that loaded.
    loads: int
    #: Bytes they loaded.
    loaded_bytes: float
    #: Chunks that got room in host memory.
    stored_chunks: int
    #: Their bytes.
    stored_bytes: float
    #: Chunks that made room.
    evicted_chunks: int
    #: Passes of a request in which nothing could make room.
    refused_stores: int
    #: Pulls from other servers asked for.
    pulls: int
    #: Pulls that brought chunks.
    pulls_arrived: int
    #: Pulls that took too long, or whose source ended.
    pulls_failed: int
    #: Pulls of others that were sent.
    pulls_served: int
    #: Bytes that pulls brought.
    pulled_bytes: float
    #: Requests that asked files. Absent without files, like the next four.
    disk_lookups: NotRequired[int]
    #: Requests that files had chunks for.
    disk_reads: NotRequired[int]
    #: Bytes these brought.
    disk_read_bytes: NotRequired[float]
    #: Requests whose chunks went to files, per step.
    disk_writes: NotRequired[int]
    #: Until the chunks are in host memory, or not.
    disk_wait_s: NotRequired[Waits]
    #: From the pass that begins a load until the engine has it.
    load_wait_s: Waits
    #: From the pass that asks until there is nothing to wait for.
    pull_wait_s: Waits
    #: Room for chunks.
    capacity_bytes: float
    #: Bytes they take at the end.
    used_bytes: float
    link_use: LinkUse


class OverTime(TypedDict):
    """Its servers at each change, from the start of the run."""

    #: From the start of the run, s.
    at_s: float
    #: Servers that exist from then on.
    servers: int
    #: Servers that serve from then on.
    ready: int
    #: Servers that its Deployment is to have from then on.
    wanted: int


class Pool(TypedDict):
    """What became of each pool."""

    #: Its name.
    pool: str
    #: Servers that exist, over time: what is paid for. From the first reported stage on.
    mean_servers: float
    #: Servers that serve, over time.
    mean_ready: float
    #: Most servers at a time.
    max_servers: int
    #: Fewest that served at a time.
    min_ready: int
    #: Times that a server became ready.
    starts: int
    #: Times that one ended.
    ends: int
    #: Hours that its servers exist, from the first reported stage on.
    server_hours: float
    #: The same of its GPUs.
    gpu_hours: float
    #: US dollars of one server; where the scenario has prices.
    price_per_hour: NotRequired[float]
    #: US dollars of its server hours.
    cost: NotRequired[float]
    #: Its servers at each change, from the start of the run.
    over_time: list[OverTime]


class Event(TypedDict):
    """What happened, in time order."""

    #: From the start of the run, s.
    at_s: float
    #: A server, a pool or a router process.
    subject: str
    #: What happened to it.
    what: str


class Fleet(TypedDict):
    """What happened to the servers. Absent where nothing did."""

    #: What became of each pool.
    pools: list[Pool]
    #: Times that a request lost its server.
    lost: int
    #: Times that the gateway or the router then sent it once more.
    sent_again: int
    #: Prompts that decode servers computed because the prefill server was gone.
    fell_back: int
    #: What happened, in time order.
    events: list[Event]
    #: Events beyond those listed.
    events_left_out: int


class Missed(TypedDict):
    """Adjacent times below that share, where chance does not explain it."""

    #: From the start of the run, s.
    from_s: float
    #: Its end, s.
    to_s: float
    #: Requests sent in it.
    sent: int
    #: Those of them that meet every goal.
    good: int
    #: What happened at that time, and how many servers serve.
    why: str


class Goals(TypedDict):
    """Absent without goodput goals."""

    #: Requests of each bin that meet every goal.
    good: list[int]
    #: Share of requests that should.
    share: float
    #: Whether the scenario expects that share; else it is the usual one.
    expected: bool
    #: Adjacent times below that share, where chance does not explain it.
    missed: list[Missed]
    #: Minutes of these in which requests were sent.
    missed_minutes: float


class Timeline(TypedDict):
    """Requests by when they were sent. Absent where neither the fleet nor the load changes."""

    #: Width of a bin, s. The first one begins with the run.
    bin_s: float
    #: Requests of reported stages sent in each bin.
    sent: list[int]
    #: Of these, those that are answered.
    answered: list[int]
    #: Of these, those that fail.
    failed: list[int]
    goals: NotRequired[Goals]


class ReplicaUsage(TypedDict):
    """Share of the KV blocks in use, 0 to 1."""

    #: Over time.
    mean: float
    #: The largest at any time.
    max: float


class Speculation(TypedDict):
    """Its drafts. Absent without speculative decoding."""

    #: 1 + num_accepted_tokens / num_drafts: tokens of a verification.
    mean_acceptance_length: float
    #: Verifications with drafts, one per sequence and step.
    num_drafts: int
    #: Tokens guessed.
    num_draft_tokens: int
    #: Tokens of these that were accepted.
    num_accepted_tokens: int
    #: The same by position.
    num_accepted_tokens_per_pos: list[int]


class Replica(TypedDict):
    """Every server, or data-parallel rank of one, in the whole run."""

    #: Name of the server.
    name: str
    #: Its pool.
    pool: str
    #: Requests it served.
    requests: int
    #: Engine steps.
    steps: int
    #: Time in steps, s.
    busy_s: float
    #: Prompt tokens looked up in its prefix cache.
    prefix_query_tokens: int
    #: Prompt tokens found there.
    prefix_hit_tokens: int
    #: Requests thrown out of a batch for lack of KV blocks; each counts every time.
    preemptions: int
    #: KV blocks in GPU memory.
    num_gpu_blocks: int
    #: Tokens that they hold.
    kv_cache_tokens: int
    #: Cached blocks that made room.
    evicted_blocks: int
    #: Share of its KV blocks in use, 0 to 1.
    kv_cache_usage: ReplicaUsage
    #: Most requests in its batch.
    max_running: int
    #: Most requests in its queue.
    max_waiting: int
    #: Its KV tiers beside GPU memory.
    kv_tiers: NotRequired[KvTiers]
    speculation: NotRequired[Speculation]


TrustPool = TypedDict(
    "TrustPool",
    {
        "pool": "str",
        "class": "str",
        "outside_fitted_range": "float",
    },
)


class Validation(TypedDict):
    """What validation found for this class."""

    #: What was compared.
    quantity: str
    #: How many.
    published_numbers: int
    #: Mean of their absolute errors, %.
    mean_absolute_error_percent: float
    #: The largest error with its sign, %.
    worst_error_percent: float


Trust = TypedDict(
    "Trust",
    {
        "class": "str",
        "text": "str",
        "pools": "list[TrustPool]",
        "validation": "list[Validation]",
    },
)


class BandSide(TypedDict):
    """A stage with another KV capacity."""

    #: Mean TTFT, s.
    ttft_mean_s: float | None
    #: The queue grows until the stage ends.
    overloaded: bool


class KvCapacityBandStage(TypedDict):
    """Stages that change."""

    #: Name of the stage.
    name: str
    #: With the KV capacity as it is.
    as_is: BandSide
    #: With fewer blocks.
    fewer: BandSide
    #: With more blocks.
    more: BandSide


class KvCapacityBand(TypedDict):
    """What a few per cent of the KV blocks change near a knee."""

    #: Share of the blocks taken or added, 0 to 1.
    band: float
    #: The finding in a sentence.
    text: str
    #: Stages that change.
    stages: list[KvCapacityBandStage]


class Capacity(TypedDict):
    """The highest rate of the load that the servers sustain without end."""

    #: Requests/s that the servers sustain without end: the best estimate.
    rate: NotRequired[float]
    #: Requests/s: the highest rate that was simulated and sustained.
    low: NotRequired[float]
    #: Requests/s: the lowest rate at which the queue grew, or what was answered then, with two
    #: standard errors, if that is less.
    high: NotRequired[float]
    #: What binds there; empty where nothing was seen.
    limit: str
    #: Why the load has no such rate; empty where it has one.
    why_not: str
    #: Requests simulated to find it.
    requests: int


class Cluster(TypedDict):
    """Counters of the cluster at each point of time_s."""

    #: Requests sent so far.
    sent: list[int]
    #: Requests that ended so far.
    done: list[int]
    #: Requests that failed so far.
    failed: list[int]
    #: Requests sent and not ended.
    outstanding: list[int]
    #: Requests that wait in the router.
    unrouted: list[int]


class Endpoint(TypedDict):
    """Every endpoint at each point of time_s."""

    #: Name of the endpoint.
    name: str
    #: Its pool.
    pool: str
    #: Requests in its queue.
    waiting: list[int]
    #: Requests in its batch.
    running: list[int]
    #: Requests that the router counts.
    in_flight: list[int]
    #: Share of KV blocks in use.
    kv_cache_usage: list[float | None]
    #: Cache hits of the interval, 0 to 1; null without a lookup.
    prefix_hit_rate: list[float | None]
    #: Mean step of the interval, s; null without a step.
    step_time_s: list[float | None]


class Series(TypedDict):
    """Samples over time, at most 600 points. With --series."""

    #: Time between two points, s.
    interval_s: float
    #: The points, s of simulated time.
    time_s: list[float | None]
    cluster: Cluster
    #: Every endpoint at each point of time_s.
    endpoints: list[Endpoint]


class Published(TypedDict):
    """Published summary rows beside the simulation."""

    #: As published.
    metric: str
    #: How the publication sums up.
    statistic: str
    #: Unit of both values.
    unit: str
    #: What the simulation gives.
    simulated: float | None
    #: What was published.
    measured: float
    #: Where.
    source: str


class Variant(TypedDict):
    """Every variant, in the order of the scenario."""

    #: Name of the variant.
    name: str
    #: The variant whose load this one changes. Absent without a scan.
    scan_of: NotRequired[str]
    #: The variant whose fleet this one changes. Absent without a scan of fleets.
    fleet_of: NotRequired[str]
    #: Latency goals that good requests meet: bounds, s.
    goodput_goals: NotRequired[dict[str, float]]
    #: The stages of the load, warm-up stages included.
    stages: list[Stage]
    summary: Summary
    #: The requests of each traffic class, of the reported stages. Absent without classes.
    classes: NotRequired[list[TrafficClass]]
    routing: Routing
    kv_tiers: NotRequired[KvTiers]
    fleet: NotRequired[Fleet]
    timeline: NotRequired[Timeline]
    #: Every server, or data-parallel rank of one, in the whole run.
    replicas: list[Replica]
    trust: Trust
    kv_capacity_band: NotRequired[KvCapacityBand]
    capacity: NotRequired[Capacity]
    #: Requests that the load tool sends before its run, without a report.
    preparation: NotRequired[list[Stage]]
    series: NotRequired[Series]
    #: Published summary rows beside the simulation.
    published: NotRequired[list[Published]]
    #: Simulated time, s.
    simulated_s: float
    #: 64 bits over every event of the run, in hexadecimal digits.
    fingerprint: str
    #: Remarks on the run.
    notes: list[str]
    #: The scenario of this variant with every default filled in; see scenario.schema.json.
    resolved: NotRequired[dict[str, Any]]


class Until(TypedDict):
    """The stopping rule of --until."""

    #: As given.
    rule: str
    #: Every interval is as narrow.
    reached: bool
    #: The reason, where it is not reached; else empty.
    reason: str


class Metric(TypedDict):
    """By name with unit and statistic, such as ttft_ms.p99. Null where the stage has no such
    value."""

    #: Mean over the runs.
    mean: float
    #: Standard deviation between runs; null with one run.
    sd: float | None
    #: Half width of the 95 % interval (Student-t); null with one run.
    half_width: float | None
    #: Lower end; null with one run.
    low: float | None
    #: Upper end; null with one run.
    high: float | None
    #: Median over the runs.
    median: NotRequired[float]
    #: Lower end of its rank interval.
    median_low: NotRequired[float]
    #: Upper end.
    median_high: NotRequired[float]
    #: By seed.
    values: list[float]


class VariantStage(TypedDict):
    """By stage."""

    #: Name of the stage.
    name: str
    #: Part of the summary.
    reported: bool
    #: In the mean of the runs.
    overloaded: bool
    #: By name with unit and statistic, such as ttft_ms.p99. Null where the stage has no such
    #: value.
    metrics: dict[str, Metric | None]


class VariantSummary(TypedDict):
    """The whole run over all runs."""

    #: In the mean of the runs.
    overloaded: bool
    #: By name with unit and statistic, such as ttft_ms.p99. Null where the stage has no such
    #: value.
    metrics: dict[str, Metric | None]


class ReplicationsVariant(TypedDict):
    """By variant."""

    #: Name of the variant.
    name: str
    #: Seeds of its runs.
    seeds: list[int]
    #: By stage.
    stages: list[VariantStage]
    summary: VariantSummary


class Percent(TypedDict):
    """Relative change; null when the base is zero."""

    #: 100 (new - base) / base, %.
    mean: float
    #: Lower end of Fieller's 95 % interval, %.
    low: NotRequired[float]
    #: Upper end, %.
    high: NotRequired[float]


class StageMetric(TypedDict):
    """By name with unit and statistic."""

    #: Mean over the runs.
    mean: float
    #: Standard deviation between runs; null with one run.
    sd: float | None
    #: Half width of the 95 % interval (Student-t); null with one run.
    half_width: float | None
    #: Lower end; null with one run.
    low: float | None
    #: Upper end; null with one run.
    high: float | None
    #: Relative change; null when the base is zero.
    percent: Percent | None
    #: better, worse, larger, smaller, not distinguishable, equal, no interval or not judged.
    verdict: str


class DifferenceStage(TypedDict):
    """By stage."""

    #: Name of the stage.
    name: str
    #: By name with unit and statistic.
    metrics: dict[str, StageMetric]


class DifferenceSummary(TypedDict):
    """Differences of the whole run."""

    #: By name with unit and statistic.
    metrics: dict[str, StageMetric]


class Difference(TypedDict):
    """Every later variant against the first."""

    #: Name of the first variant.
    base: str
    #: Name of the other.
    variant: str
    #: Both faced the same requests with each seed.
    paired: bool
    #: The reason, where they did not; else empty.
    note: str
    #: By stage.
    stages: list[DifferenceStage]
    summary: DifferenceSummary


class Replications(TypedDict):
    """All runs together. With --replications or --until."""

    #: Runs per variant.
    count: int
    #: Seeds of the runs.
    seeds: list[int]
    #: Confidence of the intervals, 0 to 1.
    confidence: float
    until: NotRequired[Until]
    #: By variant.
    variants: list[ReplicationsVariant]
    #: Every later variant against the first.
    differences: list[Difference]


class Expectations(TypedDict):
    """The expectations of the scenario, judged. Absent when nothing is expected."""

    #: The condition, such as ttft_ms.p99 < 500.
    expected: str
    #: Variant and stage.
    of: str
    #: Whether it holds.
    decision: Literal["holds", "fails", "undecided"]
    #: What was found.
    found: str
    #: Where it is written.
    file: str
    #: Line in that file.
    line: int


class Line(TypedDict):
    """What the winner does better and worse; without a winner, the best variant besides the
    base."""

    #: It names the variant that this one is compared with.
    text: str
    #: Whether this variant has the better value; null where neither has, as far as can be told.
    better: bool | None


class Knee(TypedDict):
    """By variant."""

    #: Name of the variant.
    variant: str
    #: The finding in a few words.
    text: str
    #: Highest rate below the knee, requests/s; null when no stage is held.
    last_held: float | None
    #: Lowest rate that is overloaded or fails more than 1 % of its requests, requests/s; null
    #: when no knee was found.
    first_overloaded: float | None


class Verdict(TypedDict):
    """Which variant wins, by how much, and what to do next, in sentences."""

    #: One or two sentences.
    headline: str
    #: The variant that all others are compared with: the first.
    base: str
    #: Name of the variant that wins; null where none does.
    winner: str | None
    #: More seeds may change who wins.
    close: bool
    #: Expectations that fail or are undecided.
    failed: list[str]
    #: What the winner does better and worse; without a winner, the best variant besides the base.
    lines: list[Line]
    #: All variants, the best first; empty for fewer than three.
    ranking: str
    #: By variant.
    knees: list[Knee]
    #: Which variants are overloaded where; empty for none.
    overload: str
    #: The latency goals that goodput counts by; may be empty.
    goals: str
    #: What step times rest on, and how far such results were off.
    trust: str
    #: What to do now, each with a command.
    next: list[str]


class Result(TypedDict):
    """What `routesim run --output json` prints. Times are in seconds, rates per second, shares
    from 0 to 1, unless a description says otherwise. Keys may be added in later versions; none
    changes its meaning."""

    #: Name of the scenario.
    scenario: str
    #: The question it answers.
    question: str
    #: Seed of the first run.
    seed: int
    #: Version of routesim.
    version: str
    #: Commit it was built from. Absent when unknown.
    commit: NotRequired[str]
    #: SHA-256 of the resolved scenario and the files it names, in hexadecimal digits.
    scenario_hash: NotRequired[str]
    #: True when the run was interrupted and the results are partial; else absent.
    interrupted: NotRequired[bool]
    command: NotRequired[Command]
    #: Levels of every `quantiles`, %.
    quantile_levels: list[float]
    #: Every variant, in the order of the scenario.
    variants: list[Variant]
    replications: NotRequired[Replications]
    #: The expectations of the scenario, judged. Absent when nothing is expected.
    expectations: NotRequired[list[Expectations]]
    verdict: NotRequired[Verdict]
