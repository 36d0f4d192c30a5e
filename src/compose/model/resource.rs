//! What services share: networks, volumes, secrets, configs, models.

use super::{Named, SecretValue, mapping};

mapping! {
    /// A network.
    pub struct Network {
        /// Its name on the engine.
        "name" => name: String,
        /// The driver.
        "driver" => driver: String,
        /// Options of the driver.
        "driver_opts" => driver_opts: Named<String>,
        /// How addresses are given out.
        "ipam" => ipam: Ipam,
        /// Whether it must exist already.
        "external" => external: bool,
        /// Whether it has no way out.
        "internal" => internal: bool,
        /// Whether containers of others may join.
        "attachable" => attachable: bool,
        /// Labels.
        "labels" => labels: Named<String>,
        /// Whether it has IPv4 addresses; none for the engine's default.
        "enable_ipv4" => enable_ipv4: Option<bool>,
        /// Whether it has IPv6 addresses; none for the engine's default.
        "enable_ipv6" => enable_ipv6: Option<bool>,
    }
}

mapping! {
    /// How addresses are given out.
    pub struct Ipam {
        /// The driver.
        "driver" => driver: String,
        /// The pools.
        "config" => config: Vec<IpamPool>,
        /// Options of the driver, which docker compose reads and does not print.
        "options" never => options: Named<String>,
    }
}

mapping! {
    /// A pool of addresses.
    pub struct IpamPool {
        /// The subnet.
        "subnet" => subnet: String,
        /// The gateway.
        "gateway" => gateway: String,
        /// The part of the subnet that containers get.
        "ip_range" => ip_range: String,
        /// Addresses that are taken, by host name.
        "aux_addresses" => aux_addresses: Named<String>,
    }
}

mapping! {
    /// A volume.
    pub struct Volume {
        /// Its name on the engine.
        "name" => name: String,
        /// The driver.
        "driver" => driver: String,
        /// Options of the driver.
        "driver_opts" => driver_opts: Named<String>,
        /// Whether it must exist already.
        "external" => external: bool,
        /// Labels.
        "labels" => labels: Named<String>,
    }
}

mapping! {
    /// A secret.
    pub struct Secret {
        /// Its name.
        "name" => name: String,
        /// The file that holds it.
        "file" => file: String,
        /// The variable that holds it.
        "environment" => environment: String,
        /// The value of that variable, when it is set; never printed.
        "x-#value" never => value: Option<SecretValue>,
        /// Whether it must exist already.
        "external" => external: bool,
        /// Labels.
        "labels" => labels: Named<String>,
        /// The driver.
        "driver" => driver: String,
        /// Options of the driver.
        "driver_opts" => driver_opts: Named<String>,
        /// The driver of its template.
        "template_driver" => template_driver: String,
    }
}

mapping! {
    /// A config.
    pub struct Config {
        /// Its name.
        "name" => name: String,
        /// The file that holds it.
        "file" => file: String,
        /// The variable that holds it.
        "environment" => environment: String,
        /// The config itself.
        "content" => content: String,
        /// The value of the variable, when it is set; never printed.
        "x-#value" never => value: Option<SecretValue>,
        /// Whether it must exist already.
        "external" => external: bool,
        /// Labels.
        "labels" => labels: Named<String>,
        /// The driver of its template.
        "template_driver" => template_driver: String,
    }
}

mapping! {
    /// A language model services use.
    pub struct Model {
        /// Its name.
        "name" => name: String,
        /// The model.
        "model" => model: String,
        /// How much text it sees.
        "context_size" => context_size: i64,
        /// Flags of what runs it.
        "runtime_flags" => runtime_flags: Vec<String>,
    }
}
