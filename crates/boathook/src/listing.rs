//! `boathook ... list`: every object of a kind in a line, as kubectl lists them.

use anyhow::Result;
use boathook_apiserver::time::human_duration;
use jiff::Timestamp;
use kube::{Client, ResourceExt, api::ListParams};

use crate::{
    objects::{self, Kind},
    output::{
        self, Colour, Screen,
        format::{self, Format},
        table::{Columns, NONE},
    },
    pods::Scope,
};

/// A kind whose objects are listed.
pub(crate) trait Listed: Kind {
    /// The titles between NAME and AGE.
    const COLUMNS: &'static [&'static str];
    /// The one of them that is coloured.
    const COLOURED: &'static str;
    /// The titles after AGE, for `-o wide`.
    const WIDE: &'static [&'static str] = &[];

    /// What stands below those titles; where there is nothing, nothing.
    fn cells(&self, now: Timestamp) -> Vec<Option<String>>;

    fn wide_cells(&self) -> Vec<Option<String>> {
        vec![]
    }

    fn colour(&self) -> Colour;
}

/// What a person asked for.
pub(crate) struct List {
    pub(crate) scope: Scope,
    pub(crate) labels: Option<String>,
    pub(crate) format: Format,
}

impl List {
    pub(crate) async fn run<K: Listed>(self, client: &Client) -> Result<()> {
        let params = ListParams { label_selector: self.labels.clone(), ..ListParams::default() };
        let found: Vec<K> = objects::list(client, &self.scope, params).await?;
        let values = found.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        if let Some(text) = self.format.text(&format::list(values))? {
            return Ok(output::print(&text)?);
        }
        let mut screen = Screen::new();
        if found.is_empty() {
            let with = self.labels.as_ref().map(|labels| format!(" with `{labels}`")).unwrap_or_default();
            screen.note(&format!("there are no {}s{with} {}", K::kind(&()), self.scope.place()));
            return Ok(());
        }
        let header = self.header::<K>();
        let rows: Vec<_> = found.iter().map(|object| self.row(object, Timestamp::now())).collect();
        let columns = Columns::fitting([header.as_slice()].into_iter().chain(rows.iter().map(Vec::as_slice)));
        screen.line(&columns.line(&header, |_, cell| cell.to_owned()))?;
        for (row, object) in rows.iter().zip(&found) {
            let line = columns.line(row, |place, cell| match header[place] == K::COLOURED {
                true => screen.painted(object.colour(), cell),
                false => cell.to_owned(),
            });
            screen.line(&line)?;
        }
        Ok(())
    }

    pub(crate) fn header<K: Listed>(&self) -> Vec<String> {
        let wide = if self.format == Format::Wide { K::WIDE } else { &[] };
        let namespace = self.namespace("NAMESPACE");
        let titles = namespace.into_iter().chain(["NAME"]).chain(K::COLUMNS.iter().copied()).chain(["AGE"]);
        titles.chain(wide.iter().copied()).map(str::to_owned).collect()
    }

    pub(crate) fn row<K: Listed>(&self, object: &K, now: Timestamp) -> Vec<String> {
        let age = object.creation_timestamp().map(|created| human_duration(now.duration_since(created.0)));
        let wide = if self.format == Format::Wide { object.wide_cells() } else { vec![] };
        let head = self.namespace(object.namespace()).into_iter().chain([Some(object.name_any())]);
        let cells = head.chain(object.cells(now)).chain([age]).chain(wide);
        cells.map(|cell| cell.filter(|cell| !cell.is_empty()).unwrap_or_else(|| NONE.to_owned())).collect()
    }

    /// What stands in the column of namespaces, if there is one.
    fn namespace<T>(&self, cell: T) -> Option<T> {
        match self.scope {
            Scope::AllNamespaces => Some(cell),
            Scope::Namespace(_) => None,
        }
    }
}
