//! What was typed, option by option, so that a resume can refuse what it would
//! not heed.
//!
//! Method: a benchmark keeps the values of all its options under `chosen` in the
//! manifest's options. A resume takes an option that it heeds, and any other only
//! where it says what was chosen then: the same line with `--resume` behind it
//! goes on, another `--preset` is refused by name.

use crate::args::{Cli, Command};
use crate::target::Target;
use crate::{printable, usage};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use std::collections::BTreeSet;
use std::ffi::OsString;
use uflip_store::StoreContents;
use uflip_store::manifest::Chosen;

/// The options of one command line.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// Those that were given.
    given: BTreeSet<String>,
    values: Chosen,
}

/// Options that never belong to what was chosen: where results go, what is
/// said, what may be erased.
const OF_THE_MOMENT: [&str; 7] =
    ["output", "json", "resume", "live", "erase-device", "other-device", "keep-scratch"];

impl Typed {
    fn of(command: &clap::Command, matches: &ArgMatches) -> Typed {
        let mut typed = Typed::default();
        for option in command.get_arguments().filter_map(|arg| Some((arg.get_id().as_str(), arg.get_long()?)))
        {
            let (id, long) = option;
            let Ok(Some(values)) = matches.try_get_raw(id) else { continue };
            let values = values.map(|value| value.to_string_lossy().into_owned()).collect();
            typed.values.insert(long.to_string(), values);
            if matches.value_source(id) == Some(ValueSource::CommandLine) {
                typed.given.insert(long.to_string());
            }
        }
        typed
    }

    /// Whether the option was given, and not left to its default.
    pub fn was_given(&self, name: &str) -> bool {
        self.given.contains(name)
    }

    /// What is kept of it in the manifest: all but what does nothing on `target`,
    /// where there is one.
    pub fn chosen(&self, target: Option<&Target>) -> Chosen {
        let does_nothing = |name: &str| target.is_some_and(|target| target.is_without_effect(name));
        let of = |(name, _): &(&String, &Vec<String>)| {
            !OF_THE_MOMENT.contains(&name.as_str()) && !does_nothing(name)
        };
        self.values.iter().filter(of).map(|(name, values)| (name.clone(), values.clone())).collect()
    }

    /// For a resume of `contents` that heeds the options `heeded`: refuses every
    /// other one that was given, unless it says what was chosen then.
    ///
    /// # Errors
    /// The first such option, with what was chosen.
    pub fn refuse_without_effect(&self, contents: &StoreContents, heeded: &[&str]) -> anyhow::Result<()> {
        let chosen = &contents.manifest.options.chosen;
        for name in self.given.iter().filter(|name| !heeded.contains(&name.as_str())) {
            let before = chosen.as_ref().and_then(|chosen| chosen.get(name));
            if before.is_some_and(|before| Some(before) == self.values.get(name)) {
                continue;
            }
            if OF_THE_MOMENT.contains(&name.as_str()) || !is_choice(name) {
                return Err(usage(format!("--{name} does nothing where --resume goes on; leave it away")));
            }
            let was = match (before.map(|values| values.join(",")).or_else(|| known(name, contents)), chosen)
            {
                (Some(was), _) => format!("was chosen when the benchmark began ({was})"),
                (None, Some(_)) => "was not given when the benchmark began".to_string(),
                (None, None) => "was settled when the benchmark began".to_string(),
            };
            return Err(usage(format!("--{name} {was}; leave it away or start a new one with -o")));
        }
        Ok(())
    }
}

/// False for what asks for something else than a measurement, or bounds one.
fn is_choice(name: &str) -> bool {
    !["check", "print", "to-fio", "budget"].contains(&name)
}

/// What the stored plan tells of an option that was left to its default.
fn known(name: &str, contents: &StoreContents) -> Option<String> {
    match name {
        // A job has none.
        "preset" if contents.manifest.options.asked.job().is_none() => {
            contents.plan.as_ref().map(|plan| plan.preset.to_string())
        }
        "seed" => Some(contents.manifest.seed.to_string()),
        _ => None,
    }
}

/// The command line `typed`, with what was typed beside what it means.
///
/// # Errors
/// What makes no sense.
pub fn parse(typed: &[OsString]) -> Result<Cli, clap::Error> {
    let command = Cli::command();
    let matches = command.clone().try_get_matches_from(typed)?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command.clone()))?;
    let Some((name, inner)) = matches.subcommand() else { return Ok(cli) };
    let Some(part) = command.find_subcommand(name) else { return Ok(cli) };
    match &mut cli.command {
        Command::Run(args) | Command::Calibrate(args) => args.typed = Typed::of(part, inner),
        Command::Job(args) => args.typed = Typed::of(part, inner),
        Command::LogicalBlock(args) => args.typed = Typed::of(part, inner),
        Command::Copy(args) => args.typed = Typed::of(part, inner),
        Command::Pattern(args) => args.typed = Typed::of(part, inner),
        Command::Plan(args) => args.typed = Typed::of(part, inner),
        Command::Demo(args) => args.typed = Typed::of(part, inner),
        _ => {}
    }
    Ok(cli)
}

/// The same; what makes no sense ends the program with a word about it, in
/// which nothing steers the terminal: it is found again in the same line with
/// every word made printable.
pub fn parse_or_exit() -> Cli {
    let typed: Vec<OsString> = std::env::args_os().collect();
    parse(&typed).unwrap_or_else(|error| {
        let clean = typed.iter().map(|word| printable::line(&word.to_string_lossy()));
        match Cli::command().try_get_matches_from(clean) {
            Err(error) => error.exit(),
            Ok(_) => {
                crate::say_part!("{}", error.render());
                std::process::exit(error.exit_code())
            }
        }
    })
}
