//! What the micro-benchmarks are called where they are shown.

/// The nine micro-benchmarks in the papers' order, with what each varies.
pub const MICRO_BENCHMARKS: [(&str, &str); 9] = [
    ("granularity", "Granularity: response time by the size of the IOs"),
    ("alignment", "Alignment: IOs shifted off their size's grid"),
    ("locality", "Locality: IOs within a smaller and smaller target space"),
    ("partitioning", "Partitioning: sequential IOs spread over partitions"),
    ("order", "Order: steps forward, backward and in place"),
    ("parallelism", "Parallelism: several streams at once"),
    ("mix", "Mix: two baselines interleaved"),
    ("pause", "Pause: idle time after each IO"),
    ("bursts", "Bursts: idle time after groups of IOs"),
];

/// The baselines in the papers' order.
pub const BASELINES: [&str; 4] = ["SR", "RR", "SW", "RW"];
