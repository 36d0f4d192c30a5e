//! Limits of block devices, and of processes.

use serde_json::Value as Json;

use super::codec::{Context, Decode, Encode, FromText, Style};
use super::{ByteSize, mapping};
use crate::compose::node::{Node, Value};

mapping! {
    /// Limits of block devices.
    pub struct BlkioConfig {
        /// Weight against other containers.
        "weight" => weight: u16,
        /// Weights for single devices.
        "weight_device" => weight_device: Vec<BlkioWeight>,
        /// Bytes read a second.
        "device_read_bps" => device_read_bps: Vec<BlkioLimit>,
        /// Reads a second.
        "device_read_iops" => device_read_iops: Vec<BlkioLimit>,
        /// Bytes written a second.
        "device_write_bps" => device_write_bps: Vec<BlkioLimit>,
        /// Writes a second.
        "device_write_iops" => device_write_iops: Vec<BlkioLimit>,
    }
}

/// Declares a pair of a device and a number, which docker compose's JSON writes with capitals.
macro_rules! device_pair {
    ($(#[$meta:meta])* pub struct $name:ident { $field:ident : $type:ty = $key:literal / $json_key:literal, $docs:literal }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            /// The device.
            pub path: String,
            #[doc = $docs]
            pub $field: $type,
        }

        impl Decode for $name {
            fn decode(node: &Node, context: &mut Context<'_>) -> Self {
                let mut value = Self::default();
                context.entries(node, |key, child, context| match key {
                    "path" => value.path = Decode::decode(child, context),
                    $key => value.$field = Decode::decode(child, context),
                    _ => {}
                });
                value
            }
        }

        impl Encode for $name {
            fn encode(&self, style: Style) -> Json {
                let keys = if style == Style::Json { ["Path", $json_key] } else { ["path", $key] };
                let values = [self.path.encode(style), self.$field.encode(style)];
                Json::Object(keys.into_iter().map(str::to_owned).zip(values).collect())
            }
        }
    };
}

device_pair! {
    /// The weight of one device.
    pub struct BlkioWeight { weight: u16 = "weight" / "Weight", "The weight." }
}

device_pair! {
    /// The limit of one device.
    pub struct BlkioLimit { rate: ByteSize = "rate" / "Rate", "Bytes or operations a second." }
}

/// A resource limit: one value, or a soft and a hard one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ulimit {
    /// Both limits.
    Single(i64),
    /// Two limits.
    Pair {
        /// The one that counts at first.
        soft: i64,
        /// The one it may be raised to.
        hard: i64,
    },
}

impl FromText for Ulimit {}

impl Decode for Ulimit {
    fn decode(node: &Node, context: &mut Context<'_>) -> Self {
        if !matches!(node.value, Value::Map(_)) {
            return Self::Single(i64::decode(node, context));
        }
        let (mut soft, mut hard) = (0, 0);
        context.entries(node, |key, child, context| match key {
            "soft" => soft = Decode::decode(child, context),
            "hard" => hard = Decode::decode(child, context),
            _ => {}
        });
        Self::Pair { soft, hard }
    }
}

impl Encode for Ulimit {
    fn encode(&self, style: Style) -> Json {
        let pair = |soft: i64, hard: i64| {
            let mut map = serde_json::Map::new();
            for (key, value) in [("soft", soft), ("hard", hard)] {
                if value != 0 || style == Style::Yaml {
                    map.insert(key.to_owned(), Json::from(value));
                }
            }
            Json::Object(map)
        };
        match self {
            // The reference cannot tell a single 0 from none.
            Self::Single(0) => pair(0, 0),
            Self::Single(limit) => Json::from(*limit),
            Self::Pair { soft, hard } => pair(*soft, *hard),
        }
    }
}
