//! stand-in
use boathook_decide::Report;

#[derive(Clone, Default)]
pub struct Reporter;

impl Reporter {
    pub fn report<K: kube::Resource<DynamicType = ()>>(&self, object: &K, reports: Vec<Report>) {
        for report in reports {
            tracing::info!(name = object.meta().name, reason = report.reason, report.note);
        }
    }
}
