//! The keys of `deploy`. Tables only.

use super::service::object;
use super::shapes::{AMOUNT, COUNT, DEVICE_RESERVATION, LIST_OR_DICT, TEXT, TEXT_LIST, one_of};
use super::{NULL, Shape};

const ROLLOUT: Shape = Shape::Object(&object(
    &[
        ("parallelism", COUNT),
        ("delay", TEXT),
        ("failure_action", TEXT),
        ("monitor", TEXT),
        ("max_failure_ratio", AMOUNT),
        ("order", one_of(&["start-first", "stop-first"])),
    ],
    &[],
));

const GENERIC_RESOURCES: Shape = Shape::List {
    items: &Shape::Object(&object(
        &[(
            "discrete_resource_spec",
            Shape::Object(&object(&[("kind", TEXT), ("value", AMOUNT)], &[])),
        )],
        &[],
    )),
    unique: false,
};

const RESOURCES: Shape = Shape::Object(&object(
    &[
        (
            "limits",
            Shape::Object(&object(
                &[("cpus", AMOUNT), ("memory", TEXT), ("pids", COUNT)],
                &[],
            )),
        ),
        (
            "reservations",
            Shape::Object(&object(
                &[
                    ("cpus", AMOUNT),
                    ("memory", TEXT),
                    ("generic_resources", GENERIC_RESOURCES),
                    (
                        "devices",
                        Shape::List {
                            items: &DEVICE_RESERVATION,
                            unique: false,
                        },
                    ),
                ],
                &[],
            )),
        ),
    ],
    &[],
));

pub(super) const DEPLOY: Shape = Shape::OneOf(&[
    Shape::Scalar(NULL),
    Shape::Object(&object(
        &[
            ("mode", TEXT),
            ("endpoint_mode", TEXT),
            ("replicas", COUNT),
            ("labels", LIST_OR_DICT),
            ("rollback_config", ROLLOUT),
            ("update_config", ROLLOUT),
            ("resources", RESOURCES),
            (
                "restart_policy",
                Shape::Object(&object(
                    &[
                        ("condition", TEXT),
                        ("delay", TEXT),
                        ("max_attempts", COUNT),
                        ("window", TEXT),
                    ],
                    &[],
                )),
            ),
            (
                "placement",
                Shape::Object(&object(
                    &[
                        ("constraints", TEXT_LIST),
                        (
                            "preferences",
                            Shape::List {
                                items: &Shape::Object(&object(&[("spread", TEXT)], &[])),
                                unique: false,
                            },
                        ),
                        ("max_replicas_per_node", COUNT),
                    ],
                    &[],
                )),
            ),
        ],
        &[],
    )),
]);
