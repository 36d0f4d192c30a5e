//! The keys of ports and mounts. Tables only.

use super::service::object;
use super::shapes::{AMOUNT, COUNT, FLAG, LIST_OR_DICT, TEXT, one_of};
use super::{Check, INTEGER, STRING, Shape};

pub(super) const PORT: Shape = Shape::OneOf(&[
    AMOUNT,
    Shape::Object(&object(
        &[
            ("name", TEXT),
            ("mode", TEXT),
            ("host_ip", TEXT),
            ("target", COUNT),
            ("published", COUNT),
            ("protocol", TEXT),
            ("app_protocol", TEXT),
        ],
        &[],
    )),
]);

pub(super) const MOUNT: Shape = Shape::OneOf(&[
    TEXT,
    Shape::Object(&object(
        &[
            (
                "type",
                one_of(&["bind", "volume", "tmpfs", "cluster", "npipe", "image"]),
            ),
            ("source", TEXT),
            ("target", TEXT),
            ("read_only", FLAG),
            ("consistency", TEXT),
            (
                "bind",
                Shape::Object(&object(
                    &[
                        ("propagation", TEXT),
                        ("create_host_path", FLAG),
                        (
                            "recursive",
                            one_of(&["enabled", "disabled", "writable", "readonly"]),
                        ),
                        ("selinux", one_of(&["z", "Z"])),
                    ],
                    &[],
                )),
            ),
            (
                "volume",
                Shape::Object(&object(
                    &[("labels", LIST_OR_DICT), ("nocopy", FLAG), ("subpath", TEXT)],
                    &[],
                )),
            ),
            (
                "tmpfs",
                Shape::Object(&object(
                    &[
                        (
                            "size",
                            Shape::Checked(INTEGER | STRING, Check::Range(0, i64::MAX)),
                        ),
                        ("mode", AMOUNT),
                    ],
                    &[],
                )),
            ),
            ("image", Shape::Object(&object(&[("subpath", TEXT)], &[]))),
        ],
        &["type"],
    )),
]);
