//! Reviews: questions that are asked by creating an object, answered in it, and never stored.

use http::{Response, StatusCode};

use super::Call;
use super::write::Part;
use crate::access::reviews;
use crate::answer::{self, Body};
use crate::body;
use crate::request::Verb;
use crate::resource::Review;
use crate::status::{Result, Status};

impl Call {
    pub(super) fn review(&self, review: Review) -> Result<Response<Body>> {
        if self.target.verb != Verb::Create {
            return Err(Status::method_not_allowed());
        }
        let mut asked = body::object(&self.content_type, &self.body)?;
        if matches!(review, Review::SubjectAccess | Review::SelfSubjectAccess) {
            self.track(None, &mut asked, Part::Main);
        }
        let (rules, now) = (self.api.rules(), self.api.now().as_second());
        let answered = match review {
            Review::SubjectAccess => reviews::subject_access_review(&rules, asked)?,
            Review::SelfSubjectAccess => reviews::self_subject_access_review(&rules, &self.user, asked)?,
            Review::SelfSubjectRules => reviews::self_subject_rules_review(&rules, &self.user, &asked)?,
            Review::SelfSubject => reviews::self_subject_review(&self.user, now),
        };
        Ok(answer::json(StatusCode::CREATED, &answered))
    }
}
