//! The keys of a service. Tables only.

use super::build::BUILD;
use super::deploy::DEPLOY;
use super::mount::{MOUNT, PORT};
use super::patterns::{PULL_POLICIES, has_container_name, has_pull_policy};
use super::shapes::{
    AMOUNT, COMMAND, COUNT, EXTRA_HOSTS, FILE_MOUNTS, FLAG, GPU, HOOK, LIST_OR_DICT, TEXT, TEXT_LIST,
    TEXT_OR_LIST, TEXT_OR_NUMBER_MAP, ULIMITS, UNIQUE_TEXT_LIST, one_of,
};
use super::{BOOLEAN, Check, INTEGER, KeyRule, NULL, NUMBER, Object, STRING, Shape};

pub(super) static SERVICE: Shape = Shape::Object(&Object {
    keys: &[
        ("develop", DEVELOP),
        ("deploy", DEPLOY),
        ("annotations", LIST_OR_DICT),
        ("attach", FLAG),
        ("build", BUILD),
        ("blkio_config", BLKIO),
        ("cap_add", UNIQUE_TEXT_LIST),
        ("cap_drop", UNIQUE_TEXT_LIST),
        ("cgroup", one_of(&["host", "private"])),
        ("cgroup_parent", TEXT),
        ("command", COMMAND),
        ("configs", FILE_MOUNTS),
        (
            "container_name",
            Shape::Checked(
                STRING,
                Check::Text(has_container_name, "[a-zA-Z0-9][a-zA-Z0-9_.-]+"),
            ),
        ),
        (
            "cpu_count",
            Shape::Checked(STRING | INTEGER, Check::Range(0, i64::MAX)),
        ),
        (
            "cpu_percent",
            Shape::Checked(STRING | INTEGER, Check::Range(0, 100)),
        ),
        ("cpu_shares", AMOUNT),
        ("cpu_quota", AMOUNT),
        ("cpu_period", AMOUNT),
        ("cpu_rt_period", AMOUNT),
        ("cpu_rt_runtime", AMOUNT),
        ("cpus", AMOUNT),
        ("cpuset", TEXT),
        ("credential_spec", CREDENTIAL_SPEC),
        ("depends_on", DEPENDS_ON),
        ("device_cgroup_rules", UNIQUE_TEXT_LIST),
        (
            "devices",
            Shape::List {
                items: &DEVICE,
                unique: false,
            },
        ),
        ("dns", TEXT_OR_LIST),
        ("dns_opt", UNIQUE_TEXT_LIST),
        ("dns_search", TEXT_OR_LIST),
        ("domainname", TEXT),
        ("entrypoint", COMMAND),
        ("env_file", ENV_FILE),
        ("label_file", Shape::OneOf(&[TEXT, TEXT_LIST])),
        ("environment", LIST_OR_DICT),
        (
            "expose",
            Shape::List {
                items: &AMOUNT,
                unique: true,
            },
        ),
        ("extends", EXTENDS),
        ("provider", PROVIDER),
        ("external_links", UNIQUE_TEXT_LIST),
        ("extra_hosts", EXTRA_HOSTS),
        (
            "gpus",
            Shape::OneOf(&[
                one_of(&["all"]),
                Shape::List {
                    items: &GPU,
                    unique: false,
                },
            ]),
        ),
        (
            "group_add",
            Shape::List {
                items: &AMOUNT,
                unique: true,
            },
        ),
        ("healthcheck", HEALTHCHECK),
        ("hostname", TEXT),
        ("image", TEXT),
        ("init", FLAG),
        ("ipc", TEXT),
        ("isolation", TEXT),
        ("labels", LIST_OR_DICT),
        ("links", UNIQUE_TEXT_LIST),
        ("logging", LOGGING),
        ("mac_address", TEXT),
        ("mem_limit", AMOUNT),
        ("mem_reservation", COUNT),
        ("mem_swappiness", COUNT),
        ("memswap_limit", AMOUNT),
        ("network_mode", TEXT),
        ("models", MODELS),
        ("networks", NETWORKS),
        ("oom_kill_disable", FLAG),
        (
            "oom_score_adj",
            Shape::Checked(STRING | INTEGER, Check::Range(-1000, 1000)),
        ),
        ("pid", Shape::Scalar(STRING | NULL)),
        ("pids_limit", AMOUNT),
        ("platform", TEXT),
        (
            "ports",
            Shape::List {
                items: &PORT,
                unique: true,
            },
        ),
        (
            "post_start",
            Shape::List {
                items: &HOOK,
                unique: false,
            },
        ),
        (
            "pre_stop",
            Shape::List {
                items: &HOOK,
                unique: false,
            },
        ),
        ("privileged", FLAG),
        ("profiles", UNIQUE_TEXT_LIST),
        (
            "pull_policy",
            Shape::Checked(STRING, Check::Text(has_pull_policy, PULL_POLICIES)),
        ),
        ("pull_refresh_after", TEXT),
        ("read_only", FLAG),
        ("restart", TEXT),
        ("runtime", TEXT),
        ("scale", COUNT),
        ("security_opt", UNIQUE_TEXT_LIST),
        ("shm_size", AMOUNT),
        ("secrets", FILE_MOUNTS),
        ("sysctls", LIST_OR_DICT),
        ("stdin_open", FLAG),
        ("stop_grace_period", TEXT),
        ("stop_signal", TEXT),
        (
            "storage_opt",
            Shape::Named {
                keys: KeyRule::NotEmpty,
                values: &Shape::Scalar(STRING | INTEGER | NULL),
                closed: false,
            },
        ),
        ("tmpfs", TEXT_OR_LIST),
        ("tty", FLAG),
        ("ulimits", ULIMITS),
        ("use_api_socket", Shape::Scalar(BOOLEAN)),
        ("user", TEXT),
        ("uts", TEXT),
        ("userns_mode", TEXT),
        (
            "volumes",
            Shape::List {
                items: &MOUNT,
                unique: true,
            },
        ),
        ("volumes_from", UNIQUE_TEXT_LIST),
        ("working_dir", TEXT),
    ],
    required: &[],
    extensions: true,
    open: false,
});

pub(super) const fn object(
    keys: &'static [(&'static str, Shape)],
    required: &'static [&'static str],
) -> Object {
    Object {
        keys,
        required,
        extensions: true,
        open: false,
    }
}

const fn strict(keys: &'static [(&'static str, Shape)], required: &'static [&'static str]) -> Object {
    Object {
        keys,
        required,
        extensions: false,
        open: false,
    }
}

const BLKIO_LIMITS: Shape = Shape::List {
    items: &Shape::Object(&strict(&[("path", TEXT), ("rate", COUNT)], &[])),
    unique: false,
};

const BLKIO: Shape = Shape::Object(&strict(
    &[
        ("device_read_bps", BLKIO_LIMITS),
        ("device_read_iops", BLKIO_LIMITS),
        ("device_write_bps", BLKIO_LIMITS),
        ("device_write_iops", BLKIO_LIMITS),
        ("weight", COUNT),
        (
            "weight_device",
            Shape::List {
                items: &Shape::Object(&strict(&[("path", TEXT), ("weight", COUNT)], &[])),
                unique: false,
            },
        ),
    ],
    &[],
));

const CREDENTIAL_SPEC: Shape = Shape::Object(&object(
    &[("config", TEXT), ("file", TEXT), ("registry", TEXT)],
    &[],
));

const DEPENDS_ON: Shape = Shape::OneOf(&[
    UNIQUE_TEXT_LIST,
    Shape::Named {
        keys: KeyRule::Name,
        values: &Shape::Object(&object(
            &[
                ("restart", FLAG),
                ("required", Shape::Scalar(BOOLEAN)),
                (
                    "condition",
                    one_of(&[
                        "service_started",
                        "service_healthy",
                        "service_completed_successfully",
                    ]),
                ),
            ],
            &["condition"],
        )),
        closed: true,
    },
]);

const DEVICE: Shape = Shape::OneOf(&[
    TEXT,
    Shape::Object(&object(
        &[("source", TEXT), ("target", TEXT), ("permissions", TEXT)],
        &["source"],
    )),
]);

const ENV_FILE: Shape = Shape::OneOf(&[
    TEXT,
    Shape::List {
        items: &Shape::OneOf(&[
            TEXT,
            Shape::Object(&strict(
                &[("path", TEXT), ("format", TEXT), ("required", FLAG)],
                &["path"],
            )),
        ]),
        unique: false,
    },
]);

const EXTENDS: Shape = Shape::OneOf(&[
    TEXT,
    Shape::Object(&strict(&[("service", TEXT), ("file", TEXT)], &["service"])),
]);

const PROVIDER_OPTION: Shape = Shape::Scalar(STRING | NUMBER | BOOLEAN);
const PROVIDER: Shape = Shape::Object(&object(
    &[
        ("type", TEXT),
        (
            "options",
            Shape::Named {
                keys: KeyRule::NotEmpty,
                values: &Shape::OneOf(&[
                    PROVIDER_OPTION,
                    Shape::List {
                        items: &PROVIDER_OPTION,
                        unique: false,
                    },
                ]),
                closed: false,
            },
        ),
    ],
    &["type"],
));

const HEALTHCHECK: Shape = Shape::Object(&object(
    &[
        ("disable", FLAG),
        ("interval", TEXT),
        ("retries", AMOUNT),
        ("test", Shape::OneOf(&[TEXT, TEXT_LIST])),
        ("timeout", TEXT),
        ("start_period", TEXT),
        ("start_interval", TEXT),
    ],
    &[],
));

const LOGGING: Shape = Shape::Object(&object(
    &[
        ("driver", TEXT),
        (
            "options",
            Shape::Named {
                keys: KeyRule::NotEmpty,
                values: &Shape::Scalar(STRING | NUMBER | NULL),
                closed: false,
            },
        ),
    ],
    &[],
));

const MODELS: Shape = Shape::OneOf(&[
    UNIQUE_TEXT_LIST,
    Shape::Named {
        keys: KeyRule::Name,
        values: &Shape::OneOf(&[
            Shape::Scalar(NULL),
            Shape::Object(&object(&[("endpoint_var", TEXT), ("model_var", TEXT)], &[])),
        ]),
        closed: false,
    },
]);

const NETWORKS: Shape = Shape::OneOf(&[
    UNIQUE_TEXT_LIST,
    Shape::Named {
        keys: KeyRule::Name,
        values: &Shape::OneOf(&[
            Shape::Scalar(NULL),
            Shape::Object(&object(
                &[
                    ("aliases", UNIQUE_TEXT_LIST),
                    ("interface_name", TEXT),
                    ("ipv4_address", TEXT),
                    ("ipv6_address", TEXT),
                    ("link_local_ips", UNIQUE_TEXT_LIST),
                    ("mac_address", TEXT),
                    ("driver_opts", TEXT_OR_NUMBER_MAP),
                    ("priority", Shape::Scalar(NUMBER)),
                    ("gw_priority", Shape::Scalar(NUMBER)),
                ],
                &[],
            )),
        ]),
        closed: true,
    },
]);

const DEVELOP: Shape = Shape::OneOf(&[
    Shape::Scalar(NULL),
    Shape::Object(&object(
        &[(
            "watch",
            Shape::List {
                items: &Shape::Object(&object(
                    &[
                        ("ignore", TEXT_OR_LIST),
                        ("include", TEXT_OR_LIST),
                        ("path", TEXT),
                        (
                            "action",
                            one_of(&["rebuild", "sync", "restart", "sync+restart", "sync+exec"]),
                        ),
                        ("target", TEXT),
                        ("exec", HOOK),
                        ("initial_sync", Shape::Scalar(BOOLEAN)),
                    ],
                    &["path", "action"],
                )),
                unique: false,
            },
        )],
        &[],
    )),
]);
