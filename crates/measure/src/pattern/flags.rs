//! The options of `uflip pattern`, and the text form that they build: there is one
//! language of patterns ([`super::text`]), and options are a way of writing it.
//!
//! How: [`Flags::text`] refuses options that would have no effect or contradict
//! each other, and says what to type; what is left becomes keys of the text. An
//! option that was not given adds nothing, so that the text's defaults are the
//! options'. Beside a whole text (`--pattern`) no other option of a pattern is
//! taken: it would say nothing, or something else than the text.

use super::{Baseline, Gaps, Pattern, PatternError, Rate, Ratio, check_pause};
use uflip_device::{Bytes, Nanos};

/// What was given; `None` where the option was left away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// `--pattern`: a whole text.
    pub pattern: Option<String>,
    /// `--base`.
    pub base: Option<Baseline>,
    /// `--io-size`.
    pub io_size: Option<Bytes>,
    /// `--io-shift`.
    pub io_shift: Option<Bytes>,
    /// `--target-offset`.
    pub target_offset: Option<Bytes>,
    /// `--target-size`.
    pub target_size: Option<Bytes>,
    /// `--incr`.
    pub incr: Option<i64>,
    /// `--partitions`.
    pub partitions: Option<u32>,
    /// `--no-repeat`.
    pub no_repeat: bool,
    /// `--pause`.
    pub pause: Option<Nanos>,
    /// `--burst`.
    pub burst: Option<u64>,
    /// `--rate`.
    pub rate: Option<Rate>,
    /// `--arrivals`.
    pub arrivals: Option<Gaps>,
    /// `--parallel`.
    pub parallel: Option<u32>,
    /// `--mix`.
    pub mix: Option<Baseline>,
    /// `--ratio`.
    pub ratio: Option<i64>,
}

/// Options that do not go together, or a value that none can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// What is wrong, and what to type instead.
    #[error("{0}")]
    Options(String),
    /// The value of an option.
    #[error(transparent)]
    Value(#[from] PatternError),
}

fn wrong<T>(message: impl Into<String>) -> Result<T, FlagError> {
    Err(FlagError::Options(message.into()))
}

impl Flags {
    /// The text form of the pattern.
    ///
    /// # Errors
    /// What has no effect, contradicts something else, or is no value.
    pub fn text(&self) -> Result<String, FlagError> {
        if let Some(text) = &self.pattern {
            self.nothing_beside(text)?;
            return Ok(text.clone());
        }
        let Some(base) = self.base else {
            return wrong("which pattern? type --base with SR, RR, SW or RW, or --pattern with a whole one");
        };
        self.location_suits(base)?;
        self.timing_suits()?;
        self.counts_are_possible()?;
        let (shared, location) = (self.shared_keys(), self.location_keys());
        let first = basic(base, [&shared[..], &location].concat());
        match (self.mix, self.ratio, self.parallel) {
            (Some(_), _, Some(_)) => wrong(
                "--mix and --parallel do not go together; type --pattern with 'SR | RW' for patterns side by \
                 side",
            ),
            (Some(second), Some(ratio), None) => {
                let (ratio, second) = (Ratio::from_value(ratio)?, basic(second, shared));
                Ok(format!("{} {first} / {} {second}", ratio.first(), ratio.second()))
            }
            (Some(_), None, None) => wrong(
                "--mix needs how many IOs of the first pattern there are for one of the second; type --ratio",
            ),
            (None, Some(_), _) => {
                wrong("--ratio is a mix's; type --mix with the second pattern or leave it away")
            }
            (None, None, Some(degree)) => Ok(format!("{degree} x {first}")),
            (None, None, None) => Ok(first),
        }
    }

    fn location_suits(&self, base: Baseline) -> Result<(), FlagError> {
        let (sequential, random) = match base {
            Baseline::Sr | Baseline::Rr => ("SR", "RR"),
            Baseline::Sw | Baseline::Rw => ("SW", "RW"),
        };
        if self.incr.is_some() && self.partitions.is_some() {
            return wrong("--incr and --partitions are two different locations; type one of them");
        }
        if base.is_random() && (self.incr.is_some() || self.partitions.is_some()) {
            return wrong(format!(
                "--incr and --partitions are for sequential patterns; type --base {sequential} instead of {base}"
            ));
        }
        if self.no_repeat && !base.is_random() {
            let second = match self.mix.filter(|second| second.is_random()) {
                Some(second) => format!(", or --pattern with '1 {base} / 1 {second}(repeat=no)'"),
                None => String::new(),
            };
            return wrong(format!(
                "--no-repeat is for random patterns, and sequential ones repeat nothing; type --base {random} \
                 instead of {base} or leave it away{second}"
            ));
        }
        Ok(())
    }

    fn timing_suits(&self) -> Result<(), FlagError> {
        if self.rate.is_some() && (self.pause.is_some() || self.burst.is_some()) {
            let pauses = if self.pause.is_some() { "--pause" } else { "--burst" };
            return wrong(format!(
                "--rate says when each IO is due, and {pauses} something else; type one of them"
            ));
        }
        if self.burst.is_some() && self.pause.is_none() {
            return wrong(
                "--burst is how many IOs there are between pauses; type --pause, too, such as --pause 1ms",
            );
        }
        if self.arrivals.is_some() && self.rate.is_none() {
            return wrong(
                "--arrivals is how the IOs of a rate arrive; type --rate, too, such as --rate 2000",
            );
        }
        Ok(())
    }

    fn counts_are_possible(&self) -> Result<(), FlagError> {
        let counts = [
            ("--partitions", self.partitions.map(u64::from)),
            ("--burst", self.burst),
            ("--parallel", self.parallel.map(u64::from)),
        ];
        let most = u64::from(u32::MAX);
        for (name, n) in counts {
            if let Some(n) = n.filter(|n| !(1..=most).contains(n)) {
                return wrong(format!("{name} {n} is not possible; type a number from 1 to {most}"));
            }
        }
        Ok(self.pause.map_or(Ok(()), check_pause)?)
    }

    /// Keys that both patterns of a mix have.
    fn shared_keys(&self) -> Vec<String> {
        let sizes = [
            ("io_size", self.io_size),
            ("io_shift", self.io_shift),
            ("target_offset", self.target_offset),
            ("target_size", self.target_size),
        ];
        let sizes = sizes.into_iter().filter_map(|(key, size)| Some(format!("{key}={}", size?.exact())));
        let due = match self.arrivals {
            Some(Gaps::Poisson) => "poisson",
            Some(Gaps::Fixed) | None => "rate",
        };
        let timing = [
            self.pause.map(|pause| format!("pause={}", pause.exact())),
            self.burst.map(|burst| format!("burst={burst}")),
            self.rate.map(|rate| format!("{due}={rate}")),
        ];
        sizes.chain(timing.into_iter().flatten()).collect()
    }

    /// Keys of the first pattern alone.
    fn location_keys(&self) -> Vec<String> {
        let keys = [
            self.incr.map(|incr| format!("incr={incr}")),
            self.partitions.map(|partitions| format!("partitions={partitions}")),
            self.no_repeat.then(|| "repeat=no".to_string()),
        ];
        keys.into_iter().flatten().collect()
    }

    /// Refuses every option beside the whole text `text`.
    fn nothing_beside(&self, text: &str) -> Result<(), FlagError> {
        let whole = [
            ("--base", self.base.is_some()),
            ("--mix", self.mix.is_some()),
            ("--ratio", self.ratio.is_some()),
        ];
        if let Some((name, _)) = whole.iter().find(|(_, given)| *given) {
            return wrong(format!(
                "--pattern is a whole pattern, and {name} a part of one; leave one of the two away. A mix is \
                 --pattern '3 SR / 1 RW'"
            ));
        }
        if let Some(degree) = self.parallel {
            return wrong(format!(
                "--parallel does nothing beside --pattern; type --pattern '{degree} x SR', with the pattern of \
                 each process for SR"
            ));
        }
        let keys = [self.shared_keys(), self.location_keys()].concat().join(", ");
        let Some(name) = self.first_key() else { return Ok(()) };
        let lone = if keys.is_empty() { Some(text.to_string()) } else { with_keys(text, &keys) };
        match lone {
            Some(instead) if keys.is_empty() => {
                wrong(format!("{name} does nothing beside --pattern; leave it away: --pattern '{instead}'"))
            }
            Some(instead) => {
                wrong(format!("{name} does nothing beside --pattern; type --pattern '{instead}'"))
            }
            None => wrong(format!(
                "{name} does nothing beside --pattern; write {keys} between the brackets of its patterns, as in \
                 'SR(io_size=4K)'"
            )),
        }
    }

    /// The first option given that is a key of a text.
    fn first_key(&self) -> Option<&'static str> {
        let keys = [
            ("--io-size", self.io_size.is_some()),
            ("--io-shift", self.io_shift.is_some()),
            ("--target-offset", self.target_offset.is_some()),
            ("--target-size", self.target_size.is_some()),
            ("--incr", self.incr.is_some()),
            ("--partitions", self.partitions.is_some()),
            ("--no-repeat", self.no_repeat),
            ("--pause", self.pause.is_some()),
            ("--burst", self.burst.is_some()),
            ("--rate", self.rate.is_some()),
            ("--arrivals", self.arrivals.is_some()),
        ];
        keys.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

fn basic(base: Baseline, keys: Vec<String>) -> String {
    if keys.is_empty() { base.to_string() } else { format!("{base}({})", keys.join(", ")) }
}

/// The text of one basic pattern with these keys added, where that is a pattern.
fn with_keys(text: &str, keys: &str) -> Option<String> {
    let text = text.trim();
    let longer = match text.strip_suffix(')') {
        Some(open) if open.ends_with('(') => format!("{open}{keys})"),
        Some(open) => format!("{open}, {keys})"),
        None => format!("{text}({keys})"),
    };
    matches!(longer.parse(), Ok(Pattern::Basic(_))).then_some(longer)
}

#[cfg(test)]
mod tests {
    use super::super::{Basic, DEFAULT_IO_SIZE, Location, Timing};
    use super::*;
    use proptest::option;
    use proptest::prelude::*;

    fn of(base: Baseline) -> Flags {
        Flags { base: Some(base), ..Flags::default() }
    }

    fn whole(text: &str) -> Flags {
        Flags { pattern: Some(text.to_string()), ..Flags::default() }
    }

    #[test]
    fn what_has_no_effect_or_contradicts_is_refused_with_what_to_type() {
        use Baseline::{Rr, Rw, Sr, Sw};
        let (size, ms, rate) = (Some(Bytes(4096)), Some(Nanos::from_millis(1)), Some("10".parse().unwrap()));
        let no_repeat = true;
        let cases = [
            (Flags::default(), "type --base with SR, RR, SW or RW, or --pattern"),
            (Flags { io_size: size, ..whole("SR") }, "type --pattern 'SR(io_size=4K)'"),
            (Flags { pause: ms, ..whole(" SR() ") }, "type --pattern 'SR(pause=1ms)'"),
            (Flags { incr: Some(-1), ..whole("SW(io_size=8K)") }, "type --pattern 'SW(io_size=8K, incr=-1)'"),
            (Flags { io_size: size, ..whole("SR(io_size=8K)") }, "write io_size=4K between the brackets"),
            (Flags { io_size: size, ..whole("SR | RW") }, "write io_size=4K between the brackets"),
            (Flags { io_shift: size, ..whole("SR") }, "--io-shift does nothing beside --pattern"),
            (Flags { target_offset: size, ..whole("SR") }, "'SR(target_offset=4K)'"),
            (Flags { target_size: size, ..whole("SR") }, "'SR(target_size=4K)'"),
            (Flags { partitions: Some(2), ..whole("SR") }, "'SR(partitions=2)'"),
            (Flags { no_repeat, ..whole("RR") }, "'RR(repeat=no)'"),
            (Flags { no_repeat, ..whole("SR") }, "write repeat=no between the brackets"),
            (Flags { pause: ms, burst: Some(4), ..whole("SR") }, "'SR(pause=1ms, burst=4)'"),
            (Flags { rate, ..whole("SR") }, "'SR(rate=10/s)'"),
            (Flags { rate, arrivals: Some(Gaps::Poisson), ..whole("SR") }, "'SR(poisson=10/s)'"),
            (Flags { arrivals: Some(Gaps::Fixed), ..whole("SR") }, "leave it away: --pattern 'SR'"),
            (Flags { base: Some(Rw), ..whole("SR") }, "leave one of the two away"),
            (Flags { mix: Some(Rw), ..whole("SR") }, "'3 SR / 1 RW'"),
            (Flags { ratio: Some(3), ..whole("SR") }, "'3 SR / 1 RW'"),
            (Flags { parallel: Some(4), ..whole("SR") }, "'4 x SR'"),
            (Flags { no_repeat, ..of(Sr) }, "type --base RR instead of SR"),
            (Flags { no_repeat, ..of(Sw) }, "type --base RW instead of SW"),
            (Flags { no_repeat, mix: Some(Rr), ratio: Some(1), ..of(Sw) }, "'1 SW / 1 RR(repeat=no)'"),
            (Flags { incr: Some(1), ..of(Rr) }, "type --base SR instead of RR"),
            (Flags { partitions: Some(2), ..of(Rw) }, "type --base SW instead of RW"),
            (Flags { incr: Some(1), partitions: Some(2), ..of(Sr) }, "type one of them"),
            (Flags { burst: Some(4), ..of(Sr) }, "type --pause, too"),
            (Flags { rate, pause: ms, ..of(Sr) }, "--pause something else; type one of them"),
            (Flags { rate, burst: Some(4), ..of(Sr) }, "--burst something else; type one of them"),
            (Flags { arrivals: Some(Gaps::Fixed), ..of(Sr) }, "type --rate, too"),
            (Flags { mix: Some(Rw), ..of(Sr) }, "type --ratio"),
            (Flags { ratio: Some(3), ..of(Sr) }, "type --mix"),
            (Flags { mix: Some(Rw), ratio: Some(3), parallel: Some(2), ..of(Sr) }, "'SR | RW'"),
            (Flags { mix: Some(Rw), ratio: Some(0), ..of(Sr) }, "type a number from 1"),
            (Flags { partitions: Some(0), ..of(Sr) }, "type a number from 1"),
            (Flags { parallel: Some(0), ..of(Sr) }, "type a number from 1"),
            (Flags { pause: ms, burst: Some(0), ..of(Sr) }, "type a number from 1"),
            (Flags { pause: ms, burst: Some(1 << 32), ..of(Sr) }, "from 1 to 4294967295"),
            (Flags { pause: Some(Nanos(u64::MAX)), ..of(Sr) }, "type a shorter one"),
        ];
        for (flags, instead) in cases {
            let said = flags.text().expect_err(instead).to_string();
            assert!(said.contains(instead), "{flags:?}: {said}");
        }
    }

    #[test]
    fn a_text_says_what_was_given_and_nothing_else() {
        let text = |flags: Flags| flags.text().unwrap();
        assert_eq!(text(of(Baseline::Sr)), "SR");
        assert_eq!(text(whole("3 SR / 1 RW")), "3 SR / 1 RW");
        let flags = Flags {
            io_size: Some(Bytes(4096)),
            incr: Some(-1),
            mix: Some(Baseline::Rw),
            ratio: Some(-2),
            ..of(Baseline::Sr)
        };
        assert_eq!(text(flags), "1 SR(io_size=4K, incr=-1) / 2 RW(io_size=4K)");
    }

    /// What the options stood for before they built a text; None where it was an error.
    fn before(flags: &Flags) -> Option<Pattern> {
        let (base, size) = (flags.base?, flags.io_size.unwrap_or(DEFAULT_IO_SIZE));
        let location = match (flags.incr, flags.partitions) {
            (Some(_), Some(_)) => return None,
            (Some(_), None) | (None, Some(_)) if base.is_random() => return None,
            (Some(incr), None) => Location::Ordered { incr },
            (None, Some(partitions)) => Location::Partitioned { partitions },
            (None, None) if flags.no_repeat && base.is_random() => Location::RandomUnique,
            (None, None) => base.basic(size).location,
        };
        let gaps = flags.arrivals.unwrap_or(Gaps::Fixed);
        let timing = match (flags.pause, flags.burst) {
            (Some(pause), Some(burst)) => Timing::Burst { pause, burst: burst as u32 },
            (Some(pause), None) => Timing::Pause { pause },
            _ => flags.rate.map_or(Timing::Consecutive, |rate| Timing::Open { rate, gaps }),
        };
        let shared = |base: Baseline| Basic {
            timing,
            io_shift: flags.io_shift.unwrap_or(Bytes(0)),
            target_offset: flags.target_offset.unwrap_or(Bytes(0)),
            target_size: flags.target_size,
            ..base.basic(size)
        };
        let first = Basic { location, ..shared(base) };
        match (flags.mix, flags.parallel) {
            (Some(_), Some(_)) => None,
            (Some(second), None) => {
                let ratio = Ratio::from_value(flags.ratio.unwrap_or(1)).ok()?;
                Some(Pattern::Mix { first, second: shared(second), ratio })
            }
            (None, Some(degree)) => Some(Pattern::Replicated { degree, basic: first }),
            (None, None) => Some(Pattern::Basic(first)),
        }
    }

    /// Taken before without a word, or refused by the command line alone.
    fn without_effect(flags: &Flags) -> bool {
        (flags.no_repeat && flags.base.is_some_and(|base| !base.is_random()))
            || (flags.burst.is_some() && flags.pause.is_none())
            || (flags.rate.is_some() && (flags.pause.is_some() || flags.burst.is_some()))
            || (flags.arrivals.is_some() && flags.rate.is_none())
            || (flags.mix.is_some() != flags.ratio.is_some())
    }

    fn baselines() -> impl Strategy<Value = Baseline> {
        prop::sample::select(Baseline::ALL.to_vec())
    }

    fn rarely<T: Strategy>(some: T) -> impl Strategy<Value = Option<T::Value>>
    where
        T::Value: std::fmt::Debug,
    {
        option::weighted(0.2, some)
    }

    prop_compose! {
        fn flags()(
            base in baselines(),
            sizes in prop::array::uniform4(rarely((0u64..1 << 40).prop_map(Bytes))),
            location in (rarely(-9i64..9), rarely(1u32..9), prop::bool::weighted(0.3)),
            timing in (rarely((0u64..1 << 40).prop_map(Nanos)), rarely(1u64..100)),
            open in (rarely(1u64..5000), rarely(any::<bool>())),
            of_several in (rarely(1u32..9), rarely((baselines(), -9i64..9))),
        ) -> Flags {
            let [io_size, io_shift, target_offset, target_size] = sizes;
            let (incr, partitions, no_repeat) = location;
            let (parallel, mix) = of_several;
            Flags {
                pattern: None, base: Some(base), io_size, io_shift, target_offset, target_size, incr, partitions,
                no_repeat, pause: timing.0, burst: timing.1,
                rate: open.0.map(|rate| rate.to_string().parse().unwrap()),
                arrivals: open.1.map(|poisson| if poisson { Gaps::Poisson } else { Gaps::Fixed }),
                parallel, mix: mix.map(|mix| mix.0), ratio: mix.map(|mix| mix.1),
            }
        }
    }

    proptest! {
        #[test]
        fn options_that_are_allowed_stand_for_the_pattern_they_always_did(flags in flags()) {
            match (flags.text(), before(&flags)) {
                (Ok(text), before) => prop_assert_eq!(Some(text.parse().unwrap()), before, "{}", text),
                (Err(_), None) => {}
                (Err(said), Some(_)) => prop_assert!(without_effect(&flags), "{}", said),
            }
        }
    }
}
