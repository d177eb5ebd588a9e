//! The query string's form of a label selector, read into requirements.
//!
//! `in` and `notin` are operators only where an operator may stand: they are keys and values elsewhere. Errors are
//! Kubernetes' sentences, the observed ones in the tests.

use super::label_syntax::label_key_problems;
use super::labels::{Operator, Requirement};

/// A word (key, value, `in`, `notin`), a symbol, or the end; with its text for messages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Token<'a> {
        let (token, rest) = split_token(self.rest);
        self.rest = rest;
        token
    }

    fn peek(&self) -> Token<'a> {
        split_token(self.rest).0
    }
}

fn split_token(text: &str) -> (Token<'_>, &str) {
    let text = text.trim_start_matches([' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return (Token::End, text);
    }
    for symbol in ["==", "!=", "=", "!", "(", ")", ",", ">", "<"] {
        if let Some(rest) = text.strip_prefix(symbol) {
            return (Token::Symbol(symbol), rest);
        }
    }
    let end = text.find([' ', '\t', '\r', '\n', '=', '!', '(', ')', ',', '>', '<']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (Token::Word(word), rest)
}

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    match tokens.peek() {
        Token::End => return Ok(requirements),
        Token::Word(_) | Token::Symbol("!") => {}
        other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text())),
    }
    loop {
        let requirement = requirement(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?;
        requirements.push(requirement);
        match (tokens.next(), tokens.peek()) {
            (Token::End, _) => return Ok(requirements),
            (Token::Symbol(","), Token::Word(_) | Token::Symbol("!")) => {}
            (Token::Symbol(","), other) => {
                return Err(format!("found '{}', expected: identifier after ','", other.text()));
            }
            (other, _) => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let first = tokens.next();
    let negated = first == Token::Symbol("!");
    let key = match if negated { tokens.next() } else { first } {
        Token::Word(key) => key,
        other => return Err(format!("found '{}', expected: identifier", other.text())),
    };
    let problems = label_key_problems(key);
    if !problems.is_empty() {
        return Err(format!("<nil>: Invalid value: {:?}: {}", key, problems.join("; ")));
    }
    if negated {
        return Requirement::new(key, Operator::DoesNotExist, Vec::new());
    }
    if matches!(tokens.peek(), Token::End | Token::Symbol(",")) {
        return Requirement::new(key, Operator::Exists, Vec::new());
    }
    let token = tokens.next();
    let operator = match token {
        Token::Word("in") => Operator::In,
        Token::Word("notin") => Operator::NotIn,
        Token::Symbol("=" | "==") => Operator::Equals,
        Token::Symbol("!=") => Operator::NotIn,
        Token::Symbol(">") => Operator::GreaterThan,
        Token::Symbol("<") => Operator::LessThan,
        other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
    };
    let values = match token {
        Token::Word(_) => value_set(tokens)?,
        _ => vec![exact_value(tokens)?],
    };
    Requirement::new(key, operator, values)
}

fn exact_value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    if matches!(tokens.peek(), Token::End | Token::Symbol(",")) {
        return Ok(String::new());
    }
    match tokens.next() {
        Token::Word(value) => Ok(value.to_owned()),
        other => Err(format!("found '{}', expected: identifier", other.text())),
    }
}

/// `(x,y)`, sorted; a place between commas that is left empty is the empty value.
fn value_set(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    match tokens.next() {
        Token::Symbol("(") => {}
        other => return Err(format!("found '{}' expected: '('", other.text())),
    }
    let mut values = Vec::new();
    loop {
        let value = match tokens.peek() {
            Token::Word(value) => {
                tokens.next();
                value
            }
            Token::Symbol("," | ")") => "",
            other if values.is_empty() => {
                return Err(format!("found '{}', expected: ',', ')' or identifier", other.text()));
            }
            other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
        };
        values.push(value.to_owned());
        match tokens.next() {
            Token::Symbol(",") => {}
            Token::Symbol(")") => break,
            other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
        }
    }
    values.sort();
    values.dedup();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Vec<String> {
        requirements(text).expect(text).iter().map(Requirement::to_string).collect()
    }

    #[test]
    fn all_forms_are_read() {
        let wanted = ["a=b", "c notin (d)", "e in (x,y)", "!f", "g notin (z)", "h", "i=j", "k>1", "l<2", "m="];
        assert_eq!(printed("a=b,c!=d,e in (y, x),!f, g notin (z),h,i==j,k>1,l<2,m="), wanted);
        assert_eq!(printed(""), Vec::<String>::new());
    }

    #[test]
    fn keywords_are_keys_and_values_where_no_operator_stands() {
        assert_eq!(printed("in in (in,notin),notin=in"), ["in in (in,notin)", "notin=in"]);
    }

    #[test]
    fn an_empty_place_in_a_set_is_the_empty_value() {
        assert_eq!(printed("a in (b,,c)"), ["a in (,b,c)"]);
        assert_eq!(printed("a in ()"), ["a in ()"]);
    }

    /// Each pair was observed on Kubernetes 1.35.
    #[test]
    fn what_cannot_be_read_is_refused_in_kubernetes_words() {
        for (text, wanted) in [
            ("a=b,", "found '', expected: identifier after ','"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a notin", "unable to parse requirement: found '' expected: '('"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": \
                 for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("/a=b", "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("a in (x)y", "found 'y', expected: ',' or 'end of string'"),
        ] {
            assert_eq!(requirements(text).expect_err(text), wanted, "{text}");
        }
    }

    #[test]
    fn several_bad_values_are_all_named() {
        let error = requirements("a in (^,-)").expect_err("bad values");
        assert!(error.starts_with("unable to parse requirement: [values[0][a]: Invalid value: \"-\": a valid label"));
        assert!(error.contains(", values[1][a]: Invalid value: \"^\": "));
    }
}
