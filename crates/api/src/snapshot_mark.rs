//! The mark on somebody else's VolumeSnapshot that asks for hooks around its cut: an annotation with the list of
//! `executionHookInfos`, as YAML or JSON; or, for tools that set no annotations, a label with a template's name.
//!
//! `boathook.dev/other-pods` beside it, an annotation or a label, is `otherPods` of the ApplicationSnapshot.
//!
//! A mark is taken as a whole or not at all. A [`MarkMistake`] names the entry and the field, and says what to write.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    application_snapshot::{ExecutionHookInfo, OtherPods},
    words::{EXECUTION_HOOK_INFOS, EXECUTION_HOOK_TEMPLATE_LABEL, OTHER_PODS},
};

/// An annotation is at most as long as all of an object's annotations may be.
const LONGEST: usize = 256 << 10;

/// What to write, where nothing that was written makes sense.
const EXAMPLE: &str = "[{executionHookTemplateName: NAME}]";

/// A mark as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    pub infos: Vec<ExecutionHookInfo>,
    pub other_pods: OtherPods,
}

/// The mark in an object's annotations and labels; nothing if it is not marked. The annotation says more than the label,
/// and wins.
pub fn of(
    annotations: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Result<Option<Mark>, MarkMistake> {
    let Some(infos) = infos(annotations, labels)? else { return Ok(None) };
    let other_pods = match annotations.get(OTHER_PODS).or_else(|| labels.get(OTHER_PODS)) {
        None => OtherPods::default(),
        Some(written) => {
            let known = OtherPods::ALL.into_iter().find(|(word, _)| word == written);
            let unknown = || MarkMistake {
                place: format!("`{OTHER_PODS}`"),
                problem: format!("`{written}` is neither `MustBeCovered` nor `Vouched`"),
            };
            known.ok_or_else(unknown)?.1
        }
    };
    Ok(Some(Mark { infos, other_pods }))
}

fn infos(
    annotations: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Result<Option<Vec<ExecutionHookInfo>>, MarkMistake> {
    if let Some(text) = annotations.get(EXECUTION_HOOK_INFOS) {
        return of_annotation(text).map(Some);
    }
    let Some(template) = labels.get(EXECUTION_HOOK_TEMPLATE_LABEL) else { return Ok(None) };
    if template.is_empty() {
        let problem = "is empty: write the name of an ExecutionHookTemplate".to_owned();
        return Err(MarkMistake { place: format!("label `{EXECUTION_HOOK_TEMPLATE_LABEL}`"), problem });
    }
    let info = ExecutionHookInfo {
        execution_hook_template_name: template.clone(),
        pod_selector: None,
        container_selector: None,
        pod_container_names_list: None,
    };
    let place = format!("label `{EXECUTION_HOOK_TEMPLATE_LABEL}`");
    info.validate().map_err(|problem| MarkMistake { place, problem })?;
    Ok(Some(vec![info]))
}

/// What is wrong with a mark, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkMistake {
    place: String,
    problem: String,
}

impl std::error::Error for MarkMistake {}

impl fmt::Display for MarkMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// An entry as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    // Not read further at once: so that a mistake is told with the field that it is in.
    execution_hook_template_name: Option<Value>,
    pod_selector: Option<Value>,
    container_selector: Option<Value>,
    pod_container_names_list: Option<Value>,
}

fn of_annotation(text: &str) -> Result<Vec<ExecutionHookInfo>, MarkMistake> {
    let mistake = |within: String, problem: String| MarkMistake {
        place: format!("annotation `{EXECUTION_HOOK_INFOS}`{within}"),
        problem,
    };
    if text.len() > LONGEST {
        return Err(mistake(String::new(), format!("longer than {LONGEST} bytes")));
    }
    let values: Vec<Value> = serde_saphyr::from_str(text).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default();
        mistake(String::new(), format!("not a list in YAML or JSON ({why}): write `{EXAMPLE}`"))
    })?;
    if values.is_empty() {
        return Err(mistake(String::new(), format!("the list is empty: write `{EXAMPLE}`, or remove the annotation")));
    }
    let entries = values.into_iter().enumerate().map(|(place, value)| {
        info(value).map_err(|(field, problem)| {
            let field = field.map(|field| format!(", {field}")).unwrap_or_default();
            mistake(format!(", entry {place}{field}"), problem)
        })
    });
    entries.collect()
}

type Wrong = (Option<String>, String);

fn info(value: Value) -> Result<ExecutionHookInfo, Wrong> {
    let entry: Entry = serde_json::from_value(value).map_err(|error| (None, error.to_string()))?;
    let Entry { execution_hook_template_name, pod_selector, container_selector, pod_container_names_list } = entry;
    let name = "executionHookTemplateName";
    let template: Option<String> = read(name, execution_hook_template_name)?;
    let template = template.filter(|template| !template.is_empty());
    let missing = || (Some(name.to_owned()), "missing: write the name of an ExecutionHookTemplate".to_owned());
    let info = ExecutionHookInfo {
        execution_hook_template_name: template.ok_or_else(missing)?,
        pod_selector: read("podSelector", pod_selector)?,
        container_selector: read("containerSelector", container_selector)?,
        pod_container_names_list: read("podContainerNamesList", pod_container_names_list)?,
    };
    info.validate().map_err(|wrong| (None, wrong))?;
    Ok(info)
}

/// A field, if it is there; every word in it must have a meaning.
fn read<T: DeserializeOwned + Serialize>(field: &str, value: Option<Value>) -> Result<Option<T>, Wrong> {
    let Some(value) = value else { return Ok(None) };
    let wrong = |problem: String| (Some(field.to_owned()), problem);
    let read: T = serde_json::from_value(value.clone()).map_err(|error| wrong(error.to_string()))?;
    let meant = serde_json::to_value(&read).map_err(|error| wrong(error.to_string()))?;
    match without_meaning(&value, &meant) {
        None => Ok(Some(read)),
        Some(path) => Err((Some(format!("{field}{path}")), "there is no such field".to_owned())),
    }
}

/// Where something was written that is not in what was read.
pub fn without_meaning(written: &Value, meant: &Value) -> Option<String> {
    match (written, meant) {
        (Value::Object(written), Value::Object(meant)) => {
            written.iter().find_map(|(key, value)| match meant.get(key) {
                Some(meant) => without_meaning(value, meant).map(|path| format!(".{key}{path}")),
                None => (!says_nothing(value)).then(|| format!(".{key}")),
            })
        }
        (Value::Array(written), Value::Array(meant)) => written
            .iter()
            .zip(meant)
            .enumerate()
            .find_map(|(place, (written, meant))| Some(format!("[{place}]{}", without_meaning(written, meant)?))),
        _ => None,
    }
}

/// As good as absent, so that it may be left out of what is meant.
fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotated(text: &str) -> Result<Option<Vec<ExecutionHookInfo>>, String> {
        let annotations = BTreeMap::from([(EXECUTION_HOOK_INFOS.to_owned(), text.to_owned())]);
        let mark = of(&annotations, &BTreeMap::new()).map_err(|mistake| mistake.to_string())?;
        Ok(mark.map(|mark| mark.infos))
    }

    fn labelled(template: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(EXECUTION_HOOK_TEMPLATE_LABEL.to_owned(), template.to_owned())])
    }

    #[test]
    fn an_annotation_is_the_list_in_yaml_or_json() {
        let yaml = "- executionHookTemplateName: mysql\n  podSelector: {matchLabels: {app: mysql}}\n  \
                    containerSelector: {containerName: mysql}\n- executionHookTemplateName: fs";
        let infos = annotated(yaml).unwrap().unwrap();
        assert_eq!(infos[0].container_selector.as_ref().unwrap().container_name, "mysql");
        assert!(infos[0].pod_selector.is_some() && !infos[1].names_a_target());
        let json = r#"[{"executionHookTemplateName": "a", "podContainerNamesList":
            [{"podName": "b", "containerNames": ["c"]}], "podSelector": null}]"#;
        assert_eq!(annotated(json).unwrap().unwrap()[0].pod_container_names_list.as_ref().unwrap()[0].pod_name, "b");
    }

    #[test]
    fn a_label_is_a_template_and_an_annotation_wins() {
        let infos = of(&BTreeMap::new(), &labelled("mysql")).unwrap().unwrap().infos;
        assert_eq!((infos.len(), infos[0].execution_hook_template_name.as_str()), (1, "mysql"));
        let annotation = "[{executionHookTemplateName: db}]".to_owned();
        let annotations = BTreeMap::from([(EXECUTION_HOOK_INFOS.to_owned(), annotation)]);
        let infos = of(&annotations, &labelled("mysql")).unwrap().unwrap().infos;
        assert_eq!(infos[0].execution_hook_template_name, "db");
        assert_eq!(of(&BTreeMap::new(), &BTreeMap::new()), Ok(None));
        assert!(of(&BTreeMap::new(), &labelled("")).unwrap_err().to_string().contains("ExecutionHookTemplate"));
    }

    #[test]
    fn other_pods_stand_beside_the_mark() {
        let vouched = |word: &str| BTreeMap::from([(OTHER_PODS.to_owned(), word.to_owned())]);
        let marked = |annotations: &BTreeMap<_, _>, more: BTreeMap<_, _>| {
            let labels: BTreeMap<_, _> = labelled("mysql").into_iter().chain(more).collect();
            of(annotations, &labels).map(|mark| mark.unwrap().other_pods).map_err(|mistake| mistake.to_string())
        };
        assert_eq!(marked(&BTreeMap::new(), BTreeMap::new()), Ok(OtherPods::MustBeCovered));
        assert_eq!(marked(&vouched("Vouched"), BTreeMap::new()), Ok(OtherPods::Vouched));
        assert_eq!(marked(&BTreeMap::new(), vouched("Vouched")), Ok(OtherPods::Vouched), "a label is as good");
        assert!(
            marked(&vouched("yes"), BTreeMap::new()).unwrap_err().contains("neither `MustBeCovered` nor `Vouched`")
        );
        assert_eq!(of(&vouched("yes"), &BTreeMap::new()), Ok(None), "without a mark it means nothing");
    }

    #[test]
    fn a_mistake_is_told_at_its_place() {
        let name = "executionHookTemplateName: a";
        for (text, words) in [
            ("mysql".to_owned(), "write `[{executionHookTemplateName: NAME}]`"),
            ("[]".to_owned(), "the list is empty"),
            ("[{}]".to_owned(), "entry 0, executionHookTemplateName: missing"),
            (format!("[{{{name}}}, {{templateName: b}}]"), "entry 1: unknown field `templateName`"),
            (format!("[{{{name}, podSelector: mysql}}]"), "entry 0, podSelector: "),
            (
                format!("[{{{name}, podSelector: {{matchLabel: {{a: b}}}}}}]"),
                "podSelector.matchLabel: there is no such",
            ),
            (format!("[{{{name}, containerSelector: {{name: a}}}}]"), "containerSelector.name: there is no such field"),
            (
                format!("[{{{name}, containerSelector: {{ContainerName: a}}}}]"),
                "containerSelector.ContainerName is called containerName",
            ),
            (format!("[{{{name}, containerSelector: {{}}}}]"), "containerSelector.containerName is missing"),
            (
                format!("[{{{name}, podContainerNamesList: [{{podName: a, containerName: b}}]}}]"),
                "podContainerNamesList[0].containerName is called containerNames",
            ),
            ("[{executionHookTemplateName: A}]".to_owned(), "entry 0: executionHookTemplateName: \"A\" is not a name"),
            (
                format!("[{{{name}, podSelector: {{matchExpressions: [{{key: a, operator: Has}}]}}}}]"),
                "entry 0: podSelector.matchExpressions[0].operator: \"Has\" is unknown",
            ),
            (
                format!("[{{{name}, podContainerNamesList: [{{podName: a, containers: [b]}}]}}]"),
                "podContainerNamesList[0].containers: there is no such field",
            ),
        ] {
            let told = annotated(&text).unwrap_err();
            assert!(told.contains(words) && told.contains(EXECUTION_HOOK_INFOS), "{text}: {told}");
        }
    }
}
