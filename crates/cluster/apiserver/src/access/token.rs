//! Bearer tokens: fixed ones given at the start, and service account tokens minted and verified here.
//!
//! A minted token is a JWT (HS256) with Kubernetes' claims. It counts as long as it has not expired and what it is
//! bound to is still there under the same UID; an account that was deleted and made again has other tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

use super::User;
use crate::{object, random};

/// The issuer of every minted token, and the audience that this server answers to.
pub const ISSUER: &str = "https://kubernetes.default.svc";

/// Clocks may differ by this much, in seconds; Kubernetes' own leeway.
const LEEWAY: i64 = 60;

/// The stored object of a resource (`serviceaccounts`, `pods`, `nodes`), by namespace and name.
pub type Lookup<'a> = &'a dyn Fn(&str, &str, &str) -> Option<Value>;

/// Why a token is refused. The client only hears that it is.
pub type TokenError = String;

pub struct Tokens {
    key: hmac::Key,
    /// Kept as tags: comparing with one takes the same time whatever is presented.
    fixed: Vec<(hmac::Tag, User)>,
}

/// What a minted token says.
pub(super) struct Claims<'a> {
    pub(super) namespace: &'a str,
    pub(super) account: &'a Value,
    pub(super) audiences: &'a [String],
    pub(super) issued: i64,
    pub(super) lifetime: i64,
    /// The pod that the token dies with, and the pod's node: claim and object.
    pub(super) bound: Vec<(&'static str, Value)>,
}

impl Tokens {
    /// `key` signs the minted tokens: keep it, and they outlive a restart.
    pub fn new(key: &[u8; 32], fixed: impl IntoIterator<Item = (String, User)>) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let fixed = fixed.into_iter().map(|(token, user)| (hmac::sign(&key, token.as_bytes()), user)).collect();
        Self { key, fixed }
    }

    /// The user of a token meant for this server. `now` is in seconds since the epoch.
    pub fn authenticate(&self, token: &str, now: i64, lookup: Lookup<'_>) -> Result<User, TokenError> {
        let fixed = self.fixed.iter().find(|(tag, _)| hmac::verify(&self.key, token.as_bytes(), tag.as_ref()).is_ok());
        if let Some((_, user)) = fixed {
            return Ok(user.clone());
        }
        let claims = self.verified(token).ok_or("invalid bearer token")?;
        check(&claims, now, lookup)
    }

    pub(super) fn mint(&self, claims: &Claims<'_>) -> String {
        let Claims { namespace, account, audiences, issued, lifetime, bound } = claims;
        let reference = |object: &Value| match object::uid(object) {
            "" => json!({"name": object::name(object)}),
            uid => json!({"name": object::name(object), "uid": uid}),
        };
        let name = object::name(account);
        let mut kubernetes = json!({"namespace": namespace, "serviceaccount": reference(account)});
        for (claim, object) in bound {
            kubernetes[*claim] = reference(object);
        }
        let claims = json!({
            "aud": audiences,
            "exp": issued + lifetime,
            "iat": issued,
            "iss": ISSUER,
            "jti": random::uid(),
            "kubernetes.io": kubernetes,
            "nbf": issued,
            "sub": super::user::service_account_name(namespace, name),
        });
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// The claims of a token that was signed here. The header is not read: there is one algorithm.
    fn verified(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        hmac::verify(&self.key, signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

fn check(claims: &Value, now: i64, lookup: Lookup<'_>) -> Result<User, TokenError> {
    if !object::texts(claims, "/aud").iter().any(|audience| audience == ISSUER) {
        return Err("the token is for another audience".to_owned());
    }
    if now > claims["exp"].as_i64().unwrap_or(0) + LEEWAY {
        return Err("service account token has expired".to_owned());
    }
    if now < claims["nbf"].as_i64().unwrap_or(i64::MAX) - LEEWAY {
        return Err("service account token is not valid yet".to_owned());
    }
    let kubernetes = &claims["kubernetes.io"];
    let namespace = object::text(kubernetes, "/namespace");
    let claim = |of: &str| (object::text(&kubernetes[of], "/name"), object::text(&kubernetes[of], "/uid"));
    let (name, uid) = claim("serviceaccount");
    let account = lookup("serviceaccounts", namespace, name).ok_or(format!("serviceaccounts {name:?} not found"))?;
    if object::uid(&account) != uid {
        return Err(format!("service account UID ({}) does not match claim ({uid})", object::uid(&account)));
    }
    let mut user = User::service_account(namespace, name, uid);
    let mut add = |key: &str, value: &str| {
        user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
    };
    add("credential-id", &format!("JTI={}", object::text(claims, "/jti")));
    if kubernetes["pod"].is_object() {
        let (name, uid) = claim("pod");
        if lookup("pods", namespace, name).is_none_or(|pod| object::uid(&pod) != uid) {
            return Err("service account token has been invalidated".to_owned());
        }
        add("pod-name", name);
        add("pod-uid", uid);
    }
    if kubernetes["node"].is_object() {
        let (name, uid) = claim("node");
        add("node-name", name);
        if !uid.is_empty() {
            add("node-uid", uid);
        }
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn tokens() -> Tokens {
        Tokens::new(&[7; 32], [("let-me-in".to_owned(), User::authenticated("admin", &["system:masters"]))])
    }

    fn account(uid: &str) -> Value {
        json!({"metadata": {"name": "bot", "namespace": "shop", "uid": uid}})
    }

    fn mint(tokens: &Tokens, bound: Vec<(&'static str, Value)>) -> String {
        let audiences = [ISSUER.to_owned()];
        let (namespace, account) = ("shop", &account("u1"));
        tokens.mint(&Claims { namespace, account, audiences: &audiences, issued: NOW, lifetime: 600, bound })
    }

    fn bot(resource: &str, namespace: &str, name: &str) -> Option<Value> {
        ((resource, namespace, name) == ("serviceaccounts", "shop", "bot")).then(|| account("u1"))
    }

    #[test]
    fn the_fixed_token_is_the_admin() {
        let user = tokens().authenticate("let-me-in", NOW, &bot).unwrap();
        assert_eq!(user.name, "admin");
        assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    }

    #[test]
    fn a_minted_token_is_its_account() {
        let tokens = tokens();
        let user = tokens.authenticate(&mint(&tokens, vec![]), NOW + 5, &bot).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:shop:bot", "u1"));
        assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    }

    #[test]
    fn what_was_not_signed_here_is_refused() {
        let tokens = tokens();
        let token = mint(&tokens, vec![]);
        let other_key = Tokens::new(&[8; 32], []);
        for bad in ["", "x", "a.b.c", "let-me-in2", &format!("{token}x"), &mint(&other_key, vec![])] {
            assert_eq!(tokens.authenticate(bad, NOW, &bot), Err("invalid bearer token".to_owned()), "{bad}");
        }
    }

    #[test]
    fn a_token_ends_with_its_time() {
        let tokens = tokens();
        let token = mint(&tokens, vec![]);
        assert!(tokens.authenticate(&token, NOW + 600 + LEEWAY, &bot).is_ok());
        let late = tokens.authenticate(&token, NOW + 601 + LEEWAY, &bot);
        assert_eq!(late, Err("service account token has expired".to_owned()));
        let early = tokens.authenticate(&token, NOW - 1 - LEEWAY, &bot);
        assert_eq!(early, Err("service account token is not valid yet".to_owned()));
    }

    #[test]
    fn a_token_ends_with_its_account() {
        let tokens = tokens();
        let token = mint(&tokens, vec![]);
        assert!(tokens.authenticate(&token, NOW, &|_, _, _| None).is_err());
        let made_again = tokens.authenticate(&token, NOW, &|_, _, _| Some(account("u2")));
        let wanted = "service account UID (u2) does not match claim (u1)";
        assert_eq!(made_again, Err(wanted.to_owned()));
    }

    #[test]
    fn a_token_ends_with_the_pod_it_is_bound_to() {
        let tokens = tokens();
        let pod = json!({"metadata": {"name": "web", "uid": "p1"}});
        let token = mint(&tokens, vec![("pod", pod.clone()), ("node", json!({"metadata": {"name": "here"}}))]);
        let there = |resource: &str, namespace: &str, name: &str| match resource {
            "pods" => (name == "web").then(|| pod.clone()),
            _ => bot(resource, namespace, name),
        };
        let user = tokens.authenticate(&token, NOW, &there).unwrap();
        assert_eq!(user.extra["authentication.kubernetes.io/pod-uid"], ["p1"]);
        assert_eq!(user.extra["authentication.kubernetes.io/node-name"], ["here"]);
        let gone = tokens.authenticate(&token, NOW, &bot);
        assert_eq!(gone, Err("service account token has been invalidated".to_owned()));
    }
}
