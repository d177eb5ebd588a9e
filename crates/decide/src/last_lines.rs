//! The end of a command's output, as a part of a one-line message.

/// How many lines are kept.
const LINES: usize = 3;
/// How many characters are kept: a message is read in a table, and an Event's note is limited to 1024 bytes.
const LONGEST: usize = 200;

/// A failure's message, followed by the last lines of the output.
pub(crate) fn with_last_lines(message: &str, output: &str) -> String {
    let cleaned = output.lines().map(|line| line.chars().filter(|one| !one.is_control()).collect::<String>());
    let lines: Vec<_> = cleaned.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return message.to_owned();
    }
    let last = lines[lines.len().saturating_sub(LINES)..].join(" | ");
    match last.chars().count().saturating_sub(LONGEST) {
        0 => format!("{message}: {last}"),
        excess => format!("{message}: ...{}", last.chars().skip(excess).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_of_the_output_follow_the_message() {
        assert_eq!(with_last_lines("exit code 1", ""), "exit code 1");
        assert_eq!(with_last_lines("exit code 1", " \n\n"), "exit code 1");
        assert_eq!(with_last_lines("exit code 1", "a\nb\r\n\nc\nd\n"), "exit code 1: b | c | d");
        assert_eq!(with_last_lines("exit code 1", "\u{1b}red\0\tend"), "exit code 1: redend");
        let long = with_last_lines("exit code 1", &"ä".repeat(5000));
        assert_eq!(long, format!("exit code 1: ...{}", "ä".repeat(LONGEST)));
    }
}
