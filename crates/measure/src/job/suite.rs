//! Ready-made jobs.
//!
//! Source: paper 004, appendix A and section 3.3.2. `ajwani` is the paper's
//! standard series; `ajwani-short` the same experiments cut down to minutes, for
//! trying out and for tests: its figures are not comparable with the paper's.
//! `write-cost` varies the focal factor and the sectors a sync (paper 002, 3.2).
//!
//! What the paper leaves open: block sizes of the recovery and misalignment
//! experiments ("for each buffer size" is read as those of the standard series,
//! for misalignment from 4 KB up, as smaller ones are below the offsets); the
//! size of Figure 3.2's writes, which were 8 bytes through a file system and so
//! one 4 KB block each on the device.

/// The names and texts of the ready-made jobs.
pub const SUITES: [(&str, &str); 5] = [
    ("ajwani", AJWANI),
    ("ajwani-short", AJWANI_SHORT),
    ("ajwani-endurance", AJWANI_ENDURANCE),
    ("write-cost", WRITE_COST),
    ("write-cost-short", WRITE_COST_SHORT),
];

const AJWANI: &str = "\
# Ajwani et al. 2008, appendix A: the standard series.
std  sr,rr,sw,rw  bs=512..8M*2  time=30s  reps=3  until=2.5%  before=fill(1M)
# Misaligned random writes, after the aligned ones they are compared with.
mis  rw  bs=4K..1M*2  shift=0,2K,16K,32K  time=30s  reps=3
# Sequential writes after bursts of random writes.
rec  sw  bs=512..8M*2  time=120s  window=4s  before=fill(1M),rw(bs=same|2K,time=5s|30s|60s)
# The whole target written, without and after such bursts, and once again
# (figure C.4).
new  sw  bs=2M  bytes=all  before=fill(1M)
old  sw  bs=2M  bytes=all  reps=2 each=size  before=fill(1M),rw(bs=2K,time=5s|30s|60s)
# Large numbers of random writes (figure 3.2).
many rw  bs=4K  count=100000  size=8G  before=fill(1M)
";

const AJWANI_SHORT: &str = "\
# The standard series in a few minutes: for trying out.
std  sr,rr,sw,rw  bs=512,4K,32K,256K,2M  time=200ms  reps=1  before=fill(1M)
mis  rw  bs=16K,64K  shift=0,2K,16K  time=200ms
rec  sw  bs=32K  time=1200ms  window=40ms  before=fill(1M),rw(bs=same|2K,time=50ms|300ms)
new  sw  bs=2M  bytes=all  before=fill(1M)
old  sw  bs=2M  bytes=all  reps=2 each=size  before=fill(1M),rw(bs=2K,time=50ms|300ms)
many rw  bs=4K  count=5000  before=fill(1M)
end  sw  bs=1M  passes=1  rounds=2  then=mis
";

const WRITE_COST: &str = "\
# Lee et al. 2009, section 3.2: f and R varied apart. A sync is so many writes,
# each in another logical block for the most part, and a flush.
cost rw  bs=4K..4M*4  sync=1,4,16  count=320  before=fill(1M)
# Logical blocks written whole and in order: where one ends is a switch merge.
order sw  bs=16K..1M*4  sync=1  bytes=64M  start=0
# What the models of reads and writes without flushes are fitted to.
plain rr,rw  bs=512..4M*4  count=320
";

const WRITE_COST_SHORT: &str = "\
cost rw  bs=4K,16K,64K  sync=1,4  count=64  before=fill(1M)
plain rr,rw  bs=4K,64K  count=64
";

const AJWANI_ENDURANCE: &str = "\
# Wears the device out: 60 rounds of 1000 writes of the whole device.
set  data=age
std  sr,rr,sw,rw  bs=512..8M*2  time=30s  reps=3
end  sw  bs=1M  passes=1000  rounds=60  then=std
";

/// The text of the ready-made job of this name.
pub fn suite(name: &str) -> Option<&'static str> {
    SUITES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
