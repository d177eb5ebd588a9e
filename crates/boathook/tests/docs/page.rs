//! A page of the documentation, as steps: files to write, commands to type, what they print.

/// One step, and the line of the page where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) does: Does,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// A `yaml` block that begins with a comment that names the file: `# web.yaml`.
    Write { file: String, text: String },
    /// An `sh` block: its commands, and what they print, if a `text` block follows.
    Run { commands: Vec<String>, prints: Option<String> },
}

/// The steps of a page, in order. Blocks of other languages are not tried.
pub(super) fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = page.lines().enumerate().map(|(number, line)| (number + 1, line));
    while let Some((line, opening)) = lines.next() {
        let Some(language) = opening.strip_prefix("```") else { continue };
        let block: Vec<_> = lines.by_ref().map(|(_, text)| text).take_while(|text| !text.starts_with("```")).collect();
        match language {
            "yaml" => {
                let (first, rest) = block.split_first().expect("a block has lines");
                if let Some(file) = first.strip_prefix("# ").filter(|file| file.ends_with(".yaml")) {
                    steps
                        .push(Step { line, does: Does::Write { file: file.to_owned(), text: rest.join("\n") + "\n" } });
                }
            }
            "sh" => steps.push(Step { line, does: Does::Run { commands: commands(&block), prints: None } }),
            "text" => match steps.last_mut().map(|step| &mut step.does) {
                Some(Does::Run { prints: prints @ None, .. }) => *prints = Some(block.join("\n")),
                _ => panic!("line {line}: a text block stands after no command"),
            },
            _ => {}
        }
    }
    steps
}

/// A command is a line; one that ends with a backslash goes on.
fn commands(block: &[&str]) -> Vec<String> {
    let mut commands = Vec::new();
    let mut begun = String::new();
    for line in block {
        begun += line;
        if begun.ends_with('\\') {
            begun.push('\n');
        } else {
            commands.push(std::mem::take(&mut begun));
        }
    }
    assert!(begun.is_empty(), "a command goes on after its block: {begun}");
    commands
}

/// Whether this was printed: `...` stands for anything in a line and, alone on one, for any lines. How many spaces
/// align a column is not looked at.
pub(super) fn matches(wanted: &str, printed: &str) -> bool {
    let lines = |text: &str| text.lines().map(squeezed).collect::<Vec<_>>();
    lines_match(&lines(wanted), &lines(printed))
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines_match(wanted: &[String], printed: &[String]) -> bool {
    match (wanted.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((any, rest)), _) if any == "..." => {
            (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]))
        }
        (Some((pattern, wanted)), Some((line, printed))) => line_matches(pattern, line) && lines_match(wanted, printed),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once("...") {
        None => pattern == line,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            let ends = rest.char_indices().map(|(place, _)| place).chain([rest.len()]);
            ends.into_iter().any(|end| line_matches(after, &rest[end..]))
        }),
    }
}

#[test]
fn a_page_is_files_and_commands() {
    let page = "\
```yaml
# a.yaml
kind: A
```
```yaml
only: shown
```
```sh
one
two \\
  more
```
so:
```text
done
```
";
    let wanted = [
        Step { line: 1, does: Does::Write { file: "a.yaml".to_owned(), text: "kind: A\n".to_owned() } },
        Step {
            line: 8,
            does: Does::Run {
                commands: vec!["one".to_owned(), "two \\\n  more".to_owned()],
                prints: Some("done".to_owned()),
            },
        },
    ];
    assert_eq!(steps(page), wanted);
}

#[test]
fn dots_stand_for_anything_and_nothing_else_does() {
    assert!(matches("a   ... c\n...\nend", "a b c\nx\ny\nend\n") && matches("...", "") && matches("a...", "a"));
    assert!(!matches("a", "a\nb") && !matches("a ... c", "a b") && !matches("a\nb", "a") && !matches("a", "ab"));
}
