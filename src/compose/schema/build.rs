//! The keys of `build`. Tables only.

use super::Shape;
use super::service::object;
use super::shapes::{COUNT, EXTRA_HOSTS, FILE_MOUNTS, FLAG, LIST_OR_DICT, TEXT, TEXT_LIST, ULIMITS};

pub(super) const BUILD: Shape = Shape::OneOf(&[
    TEXT,
    Shape::Object(&object(
        &[
            ("context", TEXT),
            ("dockerfile", TEXT),
            ("dockerfile_inline", TEXT),
            ("entitlements", TEXT_LIST),
            ("args", LIST_OR_DICT),
            ("ssh", LIST_OR_DICT),
            ("labels", LIST_OR_DICT),
            ("cache_from", TEXT_LIST),
            ("cache_to", TEXT_LIST),
            ("no_cache", FLAG),
            ("additional_contexts", LIST_OR_DICT),
            ("network", TEXT),
            ("provenance", FLAG),
            ("sbom", FLAG),
            ("pull", FLAG),
            ("target", TEXT),
            ("shm_size", COUNT),
            ("extra_hosts", EXTRA_HOSTS),
            ("isolation", TEXT),
            ("privileged", FLAG),
            ("secrets", FILE_MOUNTS),
            ("tags", TEXT_LIST),
            ("ulimits", ULIMITS),
            ("platforms", TEXT_LIST),
        ],
        &[],
    )),
]);
