//! A kind of the scenario's own: `Boat`, with a status, a scale, columns, a selectable field and a schema.

use anyhow::{Context, Result};
use boathook_tests::Ctx;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::kubectl::Kubectl;

pub(crate) struct Boats {
    pub(crate) group: String,
    /// The kind's short name, which no other scenario's kind has.
    pub(crate) short: String,
}

impl Boats {
    /// Defines the kind and waits, with kubectl, until it is served. It goes with the scenario.
    pub(crate) async fn define(ctx: &Ctx, kubectl: &Kubectl) -> Result<Self> {
        let group = format!("{}.example.com", ctx.namespace());
        // The last part of a generated name is random.
        let short = format!("bt{}", ctx.namespace().rsplit('-').next().unwrap_or_default());
        let definition: CustomResourceDefinition =
            serde_saphyr::from_str(&definition(&group, &short)).context("the definition is no CRD")?;
        ctx.create_cluster_scoped(definition).await?;
        kubectl.ok(&format!("wait --for=condition=Established crd/boats.{group}")).await?;
        Ok(Self { group, short })
    }

    /// One boat, as a manifest.
    pub(crate) fn boat(&self, name: &str, oars: u32) -> String {
        let group = &self.group;
        format!("apiVersion: {group}/v1\nkind: Boat\nmetadata: {{name: {name}}}\nspec: {{oars: {oars}}}\n")
    }
}

fn definition(group: &str, short: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: boats, singular: boat, kind: Boat, listKind: BoatList, shortNames: [{short}], categories: [{short}-fleet]}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {{}}
      scale: {{specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}}
    additionalPrinterColumns:
    - {{name: Oars, type: integer, jsonPath: .spec.oars}}
    - {{name: Captain, type: string, jsonPath: .spec.captain, priority: 1}}
    selectableFields:
    - jsonPath: .spec.captain
    schema:
      openAPIV3Schema:
        type: object
        description: A boat with oars.
        properties:
          spec:
            type: object
            required: [oars]
            properties:
              oars: {{type: integer, minimum: 1, description: How many oars it has.}}
              captain: {{type: string, default: nobody}}
              crew: {{type: array, items: {{type: string}}}}
          status:
            type: object
            properties:
              oars: {{type: integer}}
              conditions:
                type: array
                items:
                  type: object
                  properties: {{type: {{type: string}}, status: {{type: string}}, reason: {{type: string}}}}
"
    )
}
