//! docs/reference/cli.md: every command with its flags.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;

/// The page as Markdown.
pub(super) fn page() -> String {
    let mut page = super::heading("Command line");
    let mut root = Cli::command();
    // Fills in the names under which subcommands are called.
    root.build();
    section(&root, &mut page);
    page.push_str(
        "## Exit codes\n\n\
         | code | meaning |\n|---|---|\n\
         | 0 | done |\n\
         | 1 | failed; standard error says why, and what to do next |\n\
         | 2 | the command line could not be understood |\n\
         | 3 | nothing runs on the data folder |\n",
    );
    page
}

fn section(command: &Command, page: &mut String) {
    // Writing to a String cannot fail.
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(page, "## `{name}`\n");
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(page, "{about}\n");
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "```text\n{}\n```\n", usage.trim());
    arguments(command, page);
    if let Some(after) = command.get_after_help()
        && let Some(examples) = after.to_string().strip_prefix("Examples:\n")
    {
        let lines: Vec<&str> = examples.lines().map(str::trim).collect();
        let _ = writeln!(page, "```sh\n{}\n```\n", lines.join("\n"));
    }
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        section(subcommand, page);
    }
}

fn arguments(command: &Command, page: &mut String) {
    let shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version"))
        .collect();
    if shown.is_empty() {
        return;
    }
    page.push_str("| argument | meaning | values | default |\n|---|---|---|---|\n");
    for argument in shown {
        let values: Vec<String> =
            argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let defaults = argument.get_default_values().iter().filter(|_| argument.get_action().takes_values());
        let defaults: Vec<String> = defaults.map(|value| format!("`{}`", value.to_string_lossy())).collect();
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| {} | {help} | {} | {} |", spelling(argument), values.join(", "), defaults.join(", "));
    }
    page.push('\n');
}

fn spelling(argument: &Arg) -> String {
    let names = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    let value = names.and_then(|names| names.first()).map(|name| format!(" {name}"));
    match (argument.get_short(), argument.get_long()) {
        (Some(short), Some(long)) => format!("`-{short}`, `--{long}{}`", value.unwrap_or_default()),
        (None, Some(long)) => format!("`--{long}{}`", value.unwrap_or_default()),
        (Some(short), None) => format!("`-{short}{}`", value.unwrap_or_default()),
        (None, None) => format!("`{}`", argument.get_id().as_str().to_uppercase()),
    }
}
