//! Names and command words in specs. The schema refuses invalid ones by pattern; the functions refuse those in objects that
//! were stored before the schema did. Such a name in the path of a request, or such a word in a command, fails at every try.

/// The name of an object, as DNS subdomain: pods, claims, templates, classes, snapshots.
pub const OBJECT: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// The name of a container or a volume, as DNS label.
pub const LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// A word of a command: no program can be given a NUL.
pub const WORD: &str = r"^[^\x00]*$";

/// Refuses what cannot be the name of an object; the error begins with the field.
pub fn object(field: &str, name: &str) -> Result<(), String> {
    refuse_unless(name.split('.').all(is_label), field, name, "lower-case letters, digits, `-` and `.`")
}

/// Refuses what cannot be the name of a container; the error begins with the field.
pub(crate) fn container(field: &str, name: &str) -> Result<(), String> {
    refuse_unless(is_label(name), field, name, "lower-case letters, digits and `-`")
}

/// Refuses a NUL in a command; the error begins with the field.
pub(crate) fn words(field: &str, words: &[String]) -> Result<(), String> {
    match words.iter().position(|word| word.contains('\0')) {
        None => Ok(()),
        Some(place) => Err(format!("{field}[{place}]: contains a NUL byte, which no program can be given: remove it")),
    }
}

fn is_label(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().next_back()];
    let is_plain = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit();
    ends.iter().all(|end| end.is_some_and(is_plain)) && text.chars().all(|one| is_plain(one) || one == '-')
}

fn refuse_unless(valid: bool, field: &str, name: &str, of: &str) -> Result<(), String> {
    match valid {
        true => Ok(()),
        false => Err(format!("{field}: {name:?} is not a name: write {of}, with a letter or digit at both ends")),
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn functions_agree_with_the_patterns() {
        let (object_name, label) = (Regex::new(OBJECT).unwrap(), Regex::new(LABEL).unwrap());
        let names =
            ["db-0", "a", "0", "a.b-1.c", "", "-a", "a-", "a..b", ".a", "A", "a b", "a\0", "a\n", "a/b", "é", "a_b"];
        for name in names {
            assert_eq!(object("podName", name).is_ok(), object_name.is_match(name), "{name:?}");
            assert_eq!(container("containerName", name).is_ok(), label.is_match(name), "{name:?}");
        }
        let told = object("podName", "a\0").unwrap_err();
        assert!(told.starts_with(r#"podName: "a\0" is not a name: write lower-case"#), "{told}");
    }

    #[test]
    fn nul_is_found_in_any_word() {
        let word = Regex::new(WORD).unwrap();
        for (text, good) in [("", true), ("two\nlines", true), ("a\0b", false), ("\0", false)] {
            assert_eq!((word.is_match(text), words("command", &[text.to_owned()]).is_ok()), (good, good), "{text:?}");
        }
        let told = words("exec.command", &["sync".to_owned(), "\0".to_owned()]).unwrap_err();
        assert!(told.starts_with("exec.command[1]: contains a NUL byte"), "{told}");
    }
}
