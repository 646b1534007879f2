//! The binary: arguments as typed ([`args`]) become options, a target and a
//! command; the exit code is decided here, once. 0: done. 1: failed or
//! interrupted. 2: what was typed makes no sense.
#![forbid(unsafe_code)]
// Both panic where nobody listens; see `say` and `command::print`.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod args;
#[cfg(target_os = "linux")]
mod attach;
mod command;
mod describe;
mod input;
mod interrupt;
mod lab;
mod limits;
mod live;
mod plan_file;
mod printable;
mod private;
mod progress;
mod replay;
mod same_device;
mod say;
mod session;
mod target;
mod typed;

use args::{Cli, Command};
use clap::CommandFactory;
use std::process::ExitCode;

/// What was typed makes no sense: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Turns any error about something typed into a [`Usage`] error.
pub fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    Usage(error.to_string()).into()
}

fn main() -> ExitCode {
    uflip_device::process::large_files_are_errors();
    let cli = typed::parse_or_exit();
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if command::is_stdout_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            crate::say!("uflip: {}", printable::chain(&error));
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => command::run::run(args),
        Command::Calibrate(args) => command::run::calibrate(args),
        Command::Pattern(args) => command::pattern::pattern(args),
        Command::Copy(args) => command::copy::copy(args),
        Command::Plan(args) => command::plan::plan(args),
        Command::Devices(args) => command::devices::devices(args),
        Command::Show(args) => command::show::show(args),
        Command::Report(args) => command::report::report(args),
        Command::Profile(args) => command::profile::profile(args),
        Command::Compare(args) => command::compare::compare(args),
        Command::Export(args) => command::export::export(args),
        Command::Demo(args) => command::demo::demo(&args),
        Command::Sim(args) => command::sim::sim(args.command),
        Command::Job(args) => command::job::job(args),
        Command::LogicalBlock(args) => command::logical_block::logical_block(args),
        Command::Predict(args) => command::predict::predict(args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "uflip", &mut text);
            command::print(&String::from_utf8_lossy(&text))
        }
        Command::Man => command::print(&manual()?),
    }
}

/// One manual page: the program and every command with its options.
fn manual() -> anyhow::Result<String> {
    let mut cli = Cli::command();
    cli.build();
    let mut page = Vec::new();
    clap_mangen::Man::new(cli.clone()).render(&mut page)?;
    for command in cli.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = format!("uflip {}", command.get_name());
        manual_section(&mut page, command, &name)?;
        for part in command.get_subcommands().filter(|c| c.get_name() != "help") {
            manual_section(&mut page, part, &format!("{name} {}", part.get_name()))?;
        }
    }
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn manual_section(page: &mut Vec<u8>, command: &clap::Command, name: &str) -> anyhow::Result<()> {
    let part = clap_mangen::Man::new(command.clone().bin_name(name));
    page.extend(format!(".SH \"{}\"\n", name.to_uppercase()).bytes());
    part.render_synopsis_section(page)?;
    part.render_description_section(page)?;
    part.render_options_section(page)?;
    Ok(())
}
