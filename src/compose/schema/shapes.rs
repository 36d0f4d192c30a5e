//! The keys of a Compose file outside of services, and the shapes many keys share. Tables only.

use super::service::SERVICE;
use super::{BOOLEAN, Check, INTEGER, KeyRule, NULL, NUMBER, Object, STRING, Shape};

pub(super) const TEXT: Shape = Shape::Scalar(STRING);
pub(super) const FLAG: Shape = Shape::Scalar(BOOLEAN | STRING);
pub(super) const COUNT: Shape = Shape::Scalar(INTEGER | STRING);
pub(super) const AMOUNT: Shape = Shape::Scalar(NUMBER | STRING);
pub(super) const TEXT_LIST: Shape = Shape::List {
    items: &TEXT,
    unique: false,
};
pub(super) const UNIQUE_TEXT_LIST: Shape = Shape::List {
    items: &TEXT,
    unique: true,
};
pub(super) const TEXT_OR_LIST: Shape = Shape::OneOf(&[TEXT, UNIQUE_TEXT_LIST]);
pub(super) const LIST_OR_DICT: Shape = Shape::OneOf(&[
    Shape::Named {
        keys: KeyRule::NotEmpty,
        values: &Shape::Scalar(STRING | NUMBER | BOOLEAN | NULL),
        closed: true,
    },
    UNIQUE_TEXT_LIST,
]);
pub(super) const TEXT_OR_NUMBER_MAP: Shape = Shape::Named {
    keys: KeyRule::NotEmpty,
    values: &Shape::Scalar(STRING | NUMBER),
    closed: false,
};
pub(super) const TEXT_MAP: Shape = Shape::Named {
    keys: KeyRule::NotEmpty,
    values: &TEXT,
    closed: true,
};
pub(super) const COMMAND: Shape = Shape::OneOf(&[Shape::Scalar(NULL | STRING), TEXT_LIST]);
pub(super) const EXTRA_HOSTS: Shape = Shape::OneOf(&[
    Shape::Named {
        keys: KeyRule::NotEmpty,
        values: &Shape::OneOf(&[TEXT, TEXT_LIST]),
        closed: true,
    },
    UNIQUE_TEXT_LIST,
]);

const NOTHING: Shape = Shape::Scalar(NULL);
const EXTERNAL: Shape = Shape::OneOf(&[
    FLAG,
    Shape::Object(&Object {
        keys: &[("name", TEXT)],
        required: &[],
        extensions: true,
        open: false,
    }),
]);
/// Secrets and configs check the inside of `external` less.
const OPEN_EXTERNAL: Shape = Shape::OneOf(&[
    FLAG,
    Shape::Object(&Object {
        keys: &[("name", TEXT)],
        required: &[],
        extensions: true,
        open: true,
    }),
]);

/// A whole Compose file.
pub(crate) static PROJECT: Shape = Shape::Object(&Object {
    keys: &[
        ("version", TEXT),
        ("name", TEXT),
        (
            "include",
            Shape::List {
                items: &INCLUDE,
                unique: false,
            },
        ),
        (
            "services",
            Shape::Named {
                keys: KeyRule::Name,
                values: &SERVICE,
                closed: true,
            },
        ),
        (
            "models",
            Shape::Named {
                keys: KeyRule::Name,
                values: &MODEL,
                closed: false,
            },
        ),
        (
            "networks",
            Shape::Named {
                keys: KeyRule::Name,
                values: &NETWORK,
                closed: false,
            },
        ),
        (
            "volumes",
            Shape::Named {
                keys: KeyRule::Name,
                values: &VOLUME,
                closed: true,
            },
        ),
        (
            "secrets",
            Shape::Named {
                keys: KeyRule::Name,
                values: &SECRET,
                closed: true,
            },
        ),
        (
            "configs",
            Shape::Named {
                keys: KeyRule::Name,
                values: &CONFIG,
                closed: true,
            },
        ),
    ],
    required: &[],
    extensions: true,
    open: false,
});

static INCLUDE: Shape = Shape::OneOf(&[
    TEXT,
    Shape::Object(&Object {
        keys: &[
            ("path", TEXT_OR_LIST),
            ("env_file", TEXT_OR_LIST),
            ("project_directory", TEXT),
        ],
        required: &[],
        extensions: false,
        open: false,
    }),
]);

static MODEL: Shape = Shape::Object(&Object {
    keys: &[
        ("name", TEXT),
        ("model", TEXT),
        ("context_size", Shape::Scalar(INTEGER)),
        ("runtime_flags", TEXT_LIST),
    ],
    required: &["model"],
    extensions: true,
    open: false,
});

static NETWORK: Shape = Shape::OneOf(&[
    NOTHING,
    Shape::Object(&Object {
        keys: &[
            ("name", TEXT),
            ("driver", TEXT),
            ("driver_opts", TEXT_OR_NUMBER_MAP),
            ("ipam", IPAM),
            ("external", EXTERNAL),
            ("internal", FLAG),
            ("enable_ipv4", FLAG),
            ("enable_ipv6", FLAG),
            ("attachable", FLAG),
            ("labels", LIST_OR_DICT),
        ],
        required: &[],
        extensions: true,
        open: false,
    }),
]);

const IPAM: Shape = Shape::Object(&Object {
    keys: &[
        ("driver", TEXT),
        (
            "config",
            Shape::List {
                items: &IPAM_POOL,
                unique: false,
            },
        ),
        ("options", TEXT_MAP),
    ],
    required: &[],
    extensions: true,
    open: false,
});

const IPAM_POOL: Shape = Shape::Object(&Object {
    keys: &[
        ("subnet", TEXT),
        ("ip_range", TEXT),
        ("gateway", TEXT),
        ("aux_addresses", TEXT_MAP),
    ],
    required: &[],
    extensions: true,
    open: false,
});

static VOLUME: Shape = Shape::OneOf(&[
    NOTHING,
    Shape::Object(&Object {
        keys: &[
            ("name", TEXT),
            ("driver", TEXT),
            ("driver_opts", TEXT_OR_NUMBER_MAP),
            ("external", EXTERNAL),
            ("labels", LIST_OR_DICT),
        ],
        required: &[],
        extensions: true,
        open: false,
    }),
]);

static SECRET: Shape = Shape::Object(&Object {
    keys: &[
        ("name", TEXT),
        ("environment", TEXT),
        ("file", TEXT),
        ("external", OPEN_EXTERNAL),
        ("labels", LIST_OR_DICT),
        ("driver", TEXT),
        ("driver_opts", TEXT_OR_NUMBER_MAP),
        ("template_driver", TEXT),
    ],
    required: &[],
    extensions: true,
    open: false,
});

static CONFIG: Shape = Shape::Object(&Object {
    keys: &[
        ("name", TEXT),
        ("content", TEXT),
        ("environment", TEXT),
        ("file", TEXT),
        ("external", OPEN_EXTERNAL),
        ("labels", LIST_OR_DICT),
        ("template_driver", TEXT),
    ],
    required: &[],
    extensions: true,
    open: false,
});

/// Secrets and configs a service or a build uses.
pub(super) const FILE_MOUNTS: Shape = Shape::List {
    items: &Shape::OneOf(&[
        TEXT,
        Shape::Object(&Object {
            keys: &[
                ("source", TEXT),
                ("target", TEXT),
                ("uid", TEXT),
                ("gid", TEXT),
                ("mode", AMOUNT),
            ],
            required: &[],
            extensions: true,
            open: false,
        }),
    ]),
    unique: false,
};

pub(super) const ULIMITS: Shape = Shape::Named {
    keys: KeyRule::LowerCase,
    values: &Shape::OneOf(&[
        COUNT,
        Shape::Object(&Object {
            keys: &[("hard", COUNT), ("soft", COUNT)],
            required: &["soft", "hard"],
            extensions: true,
            open: false,
        }),
    ]),
    closed: false,
};

/// A hook of `post_start`, `pre_stop` or `develop.watch.exec`.
pub(super) const HOOK: Shape = Shape::Object(&Object {
    keys: &[
        ("command", COMMAND),
        ("user", TEXT),
        ("privileged", FLAG),
        ("working_dir", TEXT),
        ("environment", LIST_OR_DICT),
    ],
    required: &["command"],
    extensions: true,
    open: false,
});

/// The devices of a `deploy` reservation, whose capabilities must be named.
pub(super) const DEVICE_RESERVATION: Shape = Shape::Object(&Object {
    keys: DEVICE_REQUEST_KEYS,
    required: &["capabilities"],
    extensions: true,
    open: false,
});

/// One of `gpus`.
pub(super) const GPU: Shape = Shape::Object(&Object {
    keys: DEVICE_REQUEST_KEYS,
    required: &[],
    extensions: true,
    open: true,
});

const DEVICE_REQUEST_KEYS: &[(&str, Shape)] = &[
    ("capabilities", UNIQUE_TEXT_LIST),
    ("count", COUNT),
    ("device_ids", UNIQUE_TEXT_LIST),
    ("driver", TEXT),
    ("options", LIST_OR_DICT),
];

pub(super) const fn one_of(values: &'static [&'static str]) -> Shape {
    Shape::Checked(STRING, Check::Enum(values))
}
