//! What Boathook puts into a cluster: CRDs, roles, webhook configurations.
