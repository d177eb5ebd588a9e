//! `$(VAR)` in commands, arguments and environment variables, as Kubernetes expands it.

/// Replaces `$(NAME)` by what `value` gives; an unknown name stays as it is, and `$$` is a literal `$`.
pub(super) fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        rest = match reference {
            Some((name, after)) => {
                expanded.push_str(&value(name).unwrap_or_else(|| format!("$({name})")));
                after
            }
            None => {
                expanded.push('$');
                after.strip_prefix('$').unwrap_or(after)
            }
        };
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> String {
        expand(text, |name| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn known_names_are_replaced_and_unknown_ones_stay() {
        assert_eq!(expanded("x-$(A)-$(EMPTY)-$(NONE)"), "x-a--$(NONE)");
    }

    #[test]
    fn two_dollars_are_one_and_stop_a_reference() {
        assert_eq!(expanded("$$(A) $$$(A) $"), "$(A) $a $");
        assert_eq!(expanded("$(A $A"), "$(A $A");
    }
}
