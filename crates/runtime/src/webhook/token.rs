//! The token in the path of the webhooks, which proves that a request comes from the API server.
//!
//! API servers present no client certificate unless a cluster is configured for it. A webhook's path, however, is known
//! only to the API servers and to users who may read webhook configurations. The token is stored nowhere else: the leader
//! writes it there, and every replica learns it from there. A replaced token is accepted for [`OVERLAP`], because an API
//! server may not have seen the new one yet.

use std::{
    collections::BTreeMap,
    fmt, hint,
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use ring::rand::{SecureRandom, SystemRandom};
use snafu::{OptionExt, Snafu};
use tokio::time::Instant;

/// How long a replaced token is accepted: longer than an API server needs to see a changed configuration.
const OVERLAP: Duration = Duration::from_secs(30);

/// Tells a token from other text, so that it can be removed from messages.
const PREFIX: &str = "token-";

/// 256 bits in hexadecimal: the path of a Service may contain only what a host name may.
const DIGITS: usize = 64;

#[derive(Debug, Snafu)]
#[snafu(display("failed to read random bytes for the webhooks' token"))]
pub struct Error;

/// The first segment of a webhook's path.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl Token {
    pub(super) fn random() -> Result<Self, Error> {
        let mut bytes = [0; DIGITS / 2];
        SystemRandom::new().fill(&mut bytes).ok().context(Snafu)?;
        Ok(Self(bytes.iter().fold(PREFIX.to_owned(), |text, byte| text + &format!("{byte:02x}"))))
    }

    /// The token that a configuration asks with.
    pub(super) fn of(config: &WebhookClientConfig) -> Option<Self> {
        let (before, _) = path(config)?.rsplit_once('/')?;
        before.rsplit('/').next()?.parse().ok()
    }

    /// Makes the API server ask with this token. The paths of our webhooks have one segment.
    pub(super) fn put_into(&self, config: &mut WebhookClientConfig) {
        let service = config.service.as_mut().and_then(|service| service.path.as_mut());
        for text in config.url.as_mut().into_iter().chain(service) {
            if let Some((before, name)) = text.rsplit_once('/') {
                *text = format!("{before}/{}/{name}", self.0);
            }
        }
    }

    /// Takes the same time for every other token.
    fn is(&self, other: &Self) -> bool {
        let bytes = self.0.bytes().zip(other.0.bytes());
        bytes.fold(0, |differs, (one, other)| hint::black_box(differs | (one ^ other))) == 0
    }
}

impl FromStr for Token {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix(PREFIX).ok_or(())?;
        let is_token = digits.len() == DIGITS && digits.bytes().all(is_digit);
        is_token.then(|| Self(text.to_owned())).ok_or(())
    }
}

/// Never printed.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

fn path(config: &WebhookClientConfig) -> Option<&str> {
    let service = config.service.as_ref().and_then(|service| service.path.as_deref());
    config.url.as_deref().or(service)
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// The text without tokens: an API server that cannot reach a webhook answers with the webhook's whole URL.
pub fn without_tokens(text: &str) -> String {
    let mut parts = text.split(PREFIX);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| {
        let digits = part.bytes().take_while(|byte| is_digit(*byte)).count();
        let (hidden, rest) = if digits >= DIGITS { ("...", &part[digits..]) } else { ("", part) };
        told + PREFIX + hidden + rest
    })
}

/// The tokens that requests are accepted with.
#[derive(Debug)]
pub(super) struct Tokens(Mutex<Accepted>);

#[derive(Debug)]
struct Accepted {
    /// What this replica writes if it leads.
    own: Token,
    /// What each configuration, by its kind, was last seen to ask with.
    stored: BTreeMap<String, Vec<Token>>,
    replaced: Vec<(Token, Instant)>,
}

impl Tokens {
    pub(super) fn new() -> Result<Self, Error> {
        let accepted = Accepted { own: Token::random()?, stored: BTreeMap::new(), replaced: vec![] };
        Ok(Self(Mutex::new(accepted)))
    }

    fn lock(&self) -> MutexGuard<'_, Accepted> {
        // Every change is complete at once.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn own(&self) -> Token {
        self.lock().own.clone()
    }

    /// Makes another token this replica's own.
    pub(super) fn replace_own(&self, now: Instant) -> Result<(), Error> {
        let fresh = Token::random()?;
        let mut accepted = self.lock();
        let replaced = std::mem::replace(&mut accepted.own, fresh);
        accepted.replaced.push((replaced, now));
        Ok(())
    }

    /// The configuration of this kind asks with these tokens now.
    pub(super) fn seen(&self, kind: &str, tokens: Vec<Token>, now: Instant) {
        let mut accepted = self.lock();
        let before = accepted.stored.remove(kind).unwrap_or_default();
        accepted.replaced.retain(|(_, since)| now < *since + OVERLAP);
        let gone = before.into_iter().filter(|token| !tokens.contains(token));
        accepted.replaced.extend(gone.map(|token| (token, now)));
        accepted.stored.insert(kind.to_owned(), tokens);
    }

    pub(super) fn accept(&self, token: &Token, now: Instant) -> bool {
        let Accepted { own, stored, replaced } = &*self.lock();
        let replaced = replaced.iter().filter(|(_, since)| now < *since + OVERLAP).map(|(token, _)| token);
        let all = stored.values().flatten().chain(replaced).chain([own]);
        all.fold(false, |found, known| found | known.is(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::Reach;

    #[test]
    fn token_is_put_before_the_name_and_found_there() {
        let token = Token::random().unwrap();
        for reach in [Reach::url("https://127.0.0.1:9443").unwrap(), Reach::service("a/b").unwrap()] {
            let mut config = reach.client_config("/authors");
            assert_eq!(Token::of(&config), None);
            token.put_into(&mut config);
            assert_eq!(Token::of(&config), Some(token.clone()));
            assert!(path(&config).unwrap().ends_with(&format!("/{}/authors", token.0)));
        }
        assert!(!token.is(&Token::random().unwrap()) && token.is(&token.clone()));
    }

    #[test]
    fn weak_token_is_not_a_token() {
        let short = format!("{PREFIX}{}", "0".repeat(DIGITS - 1));
        let long = format!("{PREFIX}{}", "0".repeat(DIGITS + 1));
        for weak in ["", PREFIX, &"0".repeat(DIGITS), &short, &long] {
            assert!(weak.parse::<Token>().is_err(), "{weak}");
        }
    }

    #[test]
    fn replaced_token_is_accepted_until_the_overlap_ends() {
        let (writer, reader, start) = (Tokens::new().unwrap(), Tokens::new().unwrap(), Instant::now());
        let old = writer.own();
        assert!(writer.accept(&old, start) && !reader.accept(&old, start));
        for kind in ["a", "b"] {
            reader.seen(kind, vec![old.clone()], start);
        }
        writer.replace_own(start).unwrap();
        let new = writer.own();
        reader.seen("a", vec![new.clone()], start);
        let later = start + OVERLAP;
        assert!(reader.accept(&old, later), "one configuration still asks with it");
        reader.seen("b", vec![new.clone()], start);
        for tokens in [&writer, &reader] {
            assert!(tokens.accept(&old, later - Duration::from_secs(1)) && !tokens.accept(&old, later));
        }
        assert!(writer.accept(&new, later) && reader.accept(&new, later));
    }

    #[test]
    fn messages_and_debug_output_have_no_token() {
        let Token(secret) = &Token::random().unwrap();
        let text = format!("Post \"https://a:1/{secret}/authors?timeout=10s\": refused, token-based, {secret}");
        let told = without_tokens(&text);
        assert_eq!(told, "Post \"https://a:1/token-.../authors?timeout=10s\": refused, token-based, token-...");
        assert_eq!(without_tokens("no secret"), "no secret");
        assert_eq!(format!("{:?}", Token(secret.clone())), "Token");
    }
}
