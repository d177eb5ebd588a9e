//! One user, one attack, one door: an attempt.

use std::fmt;

use anyhow::{Result, bail, ensure};
use boathook_api::words::GROUP;
use boathook_tests::{Ctx, random::Random};
use serde_json::Value;

use super::{
    attacks::{Attack, LABEL, Place, Then, Victim, What},
    doors::{self, Door, Request},
    grants::Grant,
};

/// Only attempts whose name contains its value.
const ATTEMPT: &str = "BOATHOOK_TEST_ATTEMPT";

#[derive(Clone)]
pub(super) struct Attempt<'a> {
    pub(super) grant: &'a Grant,
    pub(super) attack: &'static Attack,
    pub(super) door: Door,
}

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} by {}", self.grant.name, self.attack.name, self.door.name())
    }
}

/// A sample of the attempts that RBAC permits, always with one that must leave its trace, and of those that RBAC forbids;
/// without a count, all of them.
pub(super) fn all<'a>(
    grants: &'a [Grant],
    attacks: &'static [Attack],
    mut random: Random,
    count: Option<usize>,
) -> Result<(Vec<Attempt<'a>>, Vec<Attempt<'a>>)> {
    let every = grants.iter().flat_map(|grant| {
        attacks.iter().flat_map(move |attack| doors_of(attack).iter().map(move |&door| Attempt { grant, attack, door }))
    });
    let every: Vec<_> = match std::env::var(ATTEMPT) {
        Ok(wanted) => {
            let wanted: Vec<_> = every.filter(|attempt| attempt.to_string().contains(&wanted)).collect();
            ensure!(!wanted.is_empty(), "no attempt has the name that {ATTEMPT} gives");
            wanted
        }
        Err(_) => every.collect(),
    };
    let (permitted, forbidden): (Vec<_>, Vec<_>) = every.into_iter().partition(Attempt::is_permitted);
    let mut sample = |attempts: Vec<Attempt<'a>>| {
        let places = random.some_up_to(attempts.len(), count);
        let mut chosen: Vec<_> = places.into_iter().map(|place| attempts[place - 1].clone()).collect();
        let control = attempts.iter().find(|attempt| attempt.is_control());
        chosen.extend(control.filter(|_| !chosen.iter().any(Attempt::is_control)).cloned());
        chosen
    };
    Ok((sample(permitted), sample(forbidden)))
}

pub(super) fn doors_of(attack: &Attack) -> &'static [Door] {
    match attack.what {
        What::Change(..) if attack.subresource == Some("scale") => &Door::TO_SCALE,
        What::Create(_) if attack.kind.kind == "Binding" => &Door::TO_BIND,
        What::Create(_) => &Door::TO_CREATE,
        What::Change(..) => &Door::TO_CHANGE,
        What::Delete => &Door::TO_DELETE,
    }
}

/// Whether RBAC lets the attack through this door.
pub(super) fn permits(grant: &Grant, attack: &Attack, door: Door) -> bool {
    grant.allows((door.verb(), attack.kind.group, &attack.resource()))
}

impl Attempt<'_> {
    fn is_permitted(&self) -> bool {
        permits(self.grant, self.attack, self.door)
    }

    /// Whether its trace may appear.
    pub(super) fn may_leave_trace(&self) -> bool {
        self.attack.allowed_by.iter().any(|right| self.grant.allows(*right))
    }

    /// Whether its victim may stay frozen: the user has the right to give its undo up.
    pub(super) fn may_leave_frozen(&self) -> bool {
        self.attack.abandons && self.grant.allows(("abandon", GROUP, self.attack.kind.plural))
    }

    /// Whether its trace must appear: without any trace, the checks would check nothing.
    pub(super) fn is_control(&self) -> bool {
        self.grant.is_control && self.door == Door::Create && self.attack.name == "inline action"
    }

    /// Its first request. Its second one, if any, deletes the object.
    async fn request(&self, ctx: &Ctx, place: &Place, victim: &str) -> Result<Request> {
        let Attack { kind, subresource, .. } = self.attack;
        let namespace = ctx.namespace();
        Ok(match &self.attack.what {
            What::Create(object) => {
                let mut object = object(place);
                object["metadata"]["labels"][LABEL] = place.number.to_string().into();
                let mut request = doors::to_create(self.door, kind, namespace, victim, object);
                if let Some(subresource) = subresource {
                    request.path += &format!("/{victim}/{subresource}");
                }
                request
            }
            What::Change(fields, _) => {
                doors::to_change(ctx, self.door, kind, (victim, *subresource), &fields(place)).await?
            }
            What::Delete => doors::to_delete(self.door, kind, namespace, victim, &label(place.number)),
        })
    }

    fn second_request(&self, ctx: &Ctx, place: &Place, victim: &str) -> Option<Request> {
        let What::Change(_, Then::Delete) = self.attack.what else { return None };
        Some(doors::to_delete(Door::Delete, &self.attack.kind, ctx.namespace(), victim, &label(place.number)))
    }

    /// The name of the object that it writes, where that is known beforehand.
    pub(super) fn object(&self, place: &Place) -> String {
        match (&self.attack.what, self.attack.victim) {
            (What::Create(_), Victim::Unscheduled) => place.victim(),
            (What::Create(_), _) => place.new_object(),
            (What::Change(..) | What::Delete, Victim::Pod) => place.pod.clone(),
            (What::Change(..) | What::Delete, _) => place.victim(),
        }
    }

    /// Sends it, and its second request; returns what was sent and how it was answered.
    pub(super) async fn send(&self, ctx: &Ctx, place: &Place, object: &str) -> Result<Vec<(Request, String)>> {
        let user = self.grant.user();
        let mut sent = Vec::new();
        loop {
            let request = self.request(ctx, place, object).await?;
            let answer = doors::send(ctx, Some(&user), &request).await;
            // An update of an object that was written meanwhile is made anew, as clients do.
            let is_outdated = matches!(&answer, Err(kube::Error::Api(status)) if status.reason == "Conflict");
            if is_outdated && request.method == "PUT" {
                continue;
            }
            sent.push((request, told(&answer)));
            break;
        }
        if let Some(request) = self.second_request(ctx, place, object) {
            let answer = doors::send(ctx, Some(&user), &request).await;
            sent.push((request, told(&answer)));
        }
        Ok(sent)
    }

    /// The attempt, what came of it and what it sent, so that it can be repeated.
    pub(super) fn describe(&self, what: &str, sent: &[(Request, String)]) -> String {
        let sent = sent.iter().map(|(request, answer)| format!("{}\n-> {answer}", self.sent(request)));
        format!("{self}: {what}\n{}", sent.collect::<Vec<_>>().join("\n"))
    }

    /// The API server refuses it although nothing that it names is there.
    pub(super) async fn is_forbidden(&self, ctx: &Ctx) -> Result<()> {
        let place = Place::nowhere();
        // An update is made of an object that is there: the right is asked for before it is looked at.
        let door = if self.door == Door::Update && matches!(self.attack.what, What::Change(..)) {
            Door::MergePatch
        } else {
            self.door
        };
        let as_sent = Attempt { door, ..self.clone() };
        let mut request = as_sent.request(ctx, &place, &self.object(&place)).await?;
        if door != self.door {
            (request.method, request.content_type) = ("PUT", "application/json");
        }
        match doors::send(ctx, Some(&self.grant.user()), &request).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            Err(error) => {
                bail!("{self}: refused in another way than by being forbidden: {error}\n{}", self.sent(&request))
            }
            Ok(_) => bail!("{self}: was not forbidden\n{}", self.sent(&request)),
        }
    }

    fn sent(&self, request: &Request) -> String {
        let Request { method, path, content_type, body } = request;
        format!("as user `{}`: {method} {path}\nContent-Type: {content_type}\n{body}", self.grant.user())
    }
}

fn label(number: usize) -> String {
    format!("{LABEL}={number}")
}

fn told(answer: &kube::Result<Value>) -> String {
    match answer {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    }
}
