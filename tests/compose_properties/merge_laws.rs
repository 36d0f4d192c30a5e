//! What holds for every pair of files when one is merged over the other.

use std::collections::BTreeMap;

use gym_sandbox::compose::config::{self, Format};
use gym_sandbox::compose::{ComposeLoader, LoadOptions, MemoryFiles, Source};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Merges files, given as text, and gives what `compose config` prints.
fn merged<Text: AsRef<str>>(files: &[Text]) -> Value {
    let options = LoadOptions::new()
        .with_working_directory("/project")
        .with_project_name("laws")
        .with_home("/home/user");
    let options = files.iter().enumerate().fold(options, |options, (index, text)| {
        options.with_file(Source::text(format!("{index}.yaml"), text.as_ref()))
    });
    let loader = ComposeLoader::with_files(options, MemoryFiles::new());
    match config::render(&loader, Format::Json) {
        Ok(rendered) => serde_json::from_str(&rendered.text).expect("JSON is printed"),
        Err(diagnostics) => {
            let files: Vec<&str> = files.iter().map(AsRef::as_ref).collect();
            panic!("{diagnostics}\nin {files:#?}");
        }
    }
}

/// A merged project as a file again. The nulls that are printed for what was not given would reset it in a file.
fn as_file(mut project: Value) -> String {
    for service in project["services"]
        .as_object_mut()
        .expect("services")
        .values_mut()
    {
        let service = service.as_object_mut().expect("a service is a mapping");
        service.retain(|key, value| !(value.is_null() && matches!(key.as_str(), "command" | "entrypoint")));
    }
    project.to_string()
}

fn pick(choices: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(choices).prop_map(str::to_owned)
}

/// `KEY: value` and `- KEY=value`, with few keys so that files meet.
fn variables() -> impl Strategy<Value = Value> {
    let value = proptest::option::of(pick(&["", "1", "x y", "p=q"]));
    let map = proptest::collection::btree_map(pick(&["A", "B", "C", "D"]), value, 0..4);
    (map, any::<bool>()).prop_map(|(map, as_list)| {
        if as_list {
            let item = |(key, value): (String, Option<String>)| match value {
                Some(value) => format!("{key}={value}"),
                None => key,
            };
            map.into_iter().map(item).collect()
        } else {
            json!(map)
        }
    })
}

fn mount() -> impl Strategy<Value = Value> {
    let places = (pick(&["/h1", "/h2"]), pick(&["/t1", "/t2", "/t3"]), any::<bool>());
    places.prop_map(|(source, target, is_short)| {
        if is_short {
            json!(format!("{source}:{target}:ro"))
        } else {
            json!({"type": "bind", "source": source, "target": target})
        }
    })
}

// Without `mode`: of one port in two forms with two modes, docker compose keeps now the one, now the other.
fn port() -> impl Strategy<Value = Value> {
    let ports = (pick(&["8080", "8081"]), 80..82, any::<bool>());
    ports.prop_map(|(published, target, is_short)| {
        if is_short {
            json!(format!("{published}:{target}"))
        } else {
            json!({"published": published, "target": target})
        }
    })
}

fn healthcheck() -> impl Strategy<Value = Value> {
    let test = prop_oneof![
        Just(json!("true")),
        Just(json!(["CMD", "a"])),
        Just(json!(["NONE"]))
    ];
    let interval = proptest::option::of(pick(&["1s", "90s"]));
    (test, interval, proptest::option::of(1..9)).prop_map(|(test, interval, retries)| {
        let all = json!({"test": test, "interval": interval, "retries": retries});
        without_nulls(all)
    })
}

fn without_nulls(mut map: Value) -> Value {
    if let Value::Object(map) = &mut map {
        map.retain(|_, value| !value.is_null());
    }
    map
}

fn list<Item: Strategy<Value = Value>>(item: Item) -> impl Strategy<Value = Value> {
    proptest::collection::vec(item, 0..4).prop_map(Value::Array)
}

// Boxed, here and below: a tree of all of them does not fit the stack of a test.
fn maybe<Of: Strategy<Value = Value> + 'static>(value: Of) -> BoxedStrategy<Value> {
    proptest::option::of(value).prop_map(Value::from).boxed()
}

/// What a service may have besides an image, with few values so that files meet.
fn keys() -> impl Strategy<Value = Value> {
    let words = || pick(&["a", "b", "c"]).prop_map(Value::from);
    let collections = (
        maybe(variables()),
        maybe(variables()),
        maybe(list(mount())),
        maybe(list(port())),
        maybe(list(pick(&["NET_ADMIN", "SYS_TIME"]).prop_map(Value::from))),
    );
    let scalars = (
        maybe(words()),
        maybe(any::<bool>().prop_map(Value::from)),
        maybe(pick(&["64m", "1g"]).prop_map(Value::from)),
    );
    let replaced = (
        maybe(list(words())),
        maybe(healthcheck()),
        maybe((1..9).prop_map(|soft| json!({"nofile": {"soft": soft, "hard": 9}}))),
        maybe(pick(&["n1", "n2"]).prop_map(|name| json!({ name: {"aliases": ["al"]} }))),
    );
    (collections, scalars, replaced).prop_map(|(collections, scalars, replaced)| {
        without_nulls(json!({
            "environment": collections.0,
            "labels": collections.1.as_object().map(|labels| {
                // A label is text.
                labels.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap_or("-").into())).collect::<Map<_, _>>()
            }),
            "volumes": collections.2,
            "ports": collections.3,
            "cap_add": collections.4,
            "hostname": scalars.0,
            "init": scalars.1,
            "mem_limit": scalars.2,
            "command": replaced.0,
            "healthcheck": replaced.1,
            "ulimits": replaced.2,
            "networks": replaced.3,
        }))
    })
}

/// A whole file: the service `a`, and maybe `b`.
fn file() -> impl Strategy<Value = Value> {
    let service = || {
        (pick(&["i:1", "i:2"]), keys()).prop_map(|(image, mut keys)| {
            keys["image"] = image.into();
            // Without networks the default one is implied, which would be printed as if it had been asked for.
            if keys.get("networks").is_none() {
                keys["networks"] = json!({"n1": null});
            }
            keys
        })
    };
    let marks = proptest::collection::vec(0..3, 0..3);
    (service(), maybe(service()), marks).prop_map(|(first, second, marks)| {
        json!({
            "services": without_nulls(json!({"a": first, "b": second})),
            "networks": {"n1": {}, "n2": {}},
            "x-marks": marks,
        })
    })
}

/// The file without a key of the service `a`, and the key.
fn without(file: &Value, key: &str) -> String {
    let mut file = file.clone();
    file["services"]["a"]
        .as_object_mut()
        .expect("a mapping")
        .remove(key);
    file.to_string()
}

const OPTIONAL_KEYS: &[&str] = &[
    "environment",
    "labels",
    "volumes",
    "ports",
    "cap_add",
    "hostname",
    "init",
    "mem_limit",
    "command",
    "healthcheck",
    "ulimits",
    "networks",
];

/// Overrides that say nothing.
const EMPTY: &[&str] = &[
    "{}",
    "services: {}",
    "services: {a: {}}",
    "services: {a: }",
    "services: {a: {environment: {}, labels: [], volumes: [], ports: []}}",
    "networks: {n1: {}}\n---\nx-marks: []",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn an_empty_override_changes_nothing(base in file(), empty in pick(EMPTY)) {
        prop_assert_eq!(merged(&[base.to_string(), empty]), merged(&[base.to_string()]));
    }

    #[test]
    fn merging_groups_as_one_likes(one in file(), two in file(), three in file()) {
        let [one, two, three] = [one, two, three].map(|file| file.to_string());
        let all = merged(&[&one, &two, &three]);
        let first = as_file(merged(&[&one, &two]));
        prop_assert_eq!(&merged(&[&first, &three]), &all, "(1 + 2) + 3");
        let last = as_file(merged(&[&two, &three]));
        prop_assert_eq!(&merged(&[&one, &last]), &all, "1 + (2 + 3)");
        prop_assert_eq!(&merged(&[one, format!("{two}\n---\n{three}")]), &all, "documents of one file");
    }

    #[test]
    fn an_override_given_twice_counts_once(base in file(), mut over in file()) {
        // Its list has no keys, so it would be appended twice.
        over.as_object_mut().expect("a mapping").remove("x-marks");
        let [base, over] = [base, over].map(|file| file.to_string());
        prop_assert_eq!(merged(&[&base, &over, &over]), merged(&[&base, &over]));
    }

    #[test]
    fn the_last_value_of_a_key_wins(base in file(), over in file()) {
        let project = merged(&[base.to_string(), over.to_string()]);
        let [base_a, over_a] = [&base, &over].map(|file| &file["services"]["a"]);
        let got = &project["services"]["a"];
        for key in ["image", "hostname", "init", "command"] {
            let expected = over_a.get(key).or_else(|| base_a.get(key)).unwrap_or(&Value::Null);
            prop_assert_eq!(&got[key], expected, "{}", key);
        }
        let mut expected = pairs(base_a);
        expected.extend(pairs(over_a));
        prop_assert_eq!(pairs(got), expected);
        let mut expected = sources(base_a);
        expected.extend(sources(over_a));
        prop_assert_eq!(sources(got), expected);
        prop_assert_eq!(got["volumes"].as_array().map_or(0, Vec::len), sources(got).len(), "one mount a target");
        // Lists without keys are appended.
        let marks = |file: &Value| file["x-marks"].as_array().cloned().unwrap_or_default();
        prop_assert_eq!(marks(&project), [marks(&base), marks(&over)].concat());
    }

    #[test]
    fn reset_removes_what_was_before_and_nothing_later(
        base in file(), key in pick(OPTIONAL_KEYS), later in file(),
    ) {
        let reset = format!("services: {{a: {{{key}: !reset null}}}}");
        let less = without(&base, &key);
        let base = base.to_string();
        prop_assert_eq!(merged(&[&base, &reset]), merged(&[&less]));
        let later = later.to_string();
        prop_assert_eq!(merged(&[&base, &reset, &later]), merged(&[&less, &later]));
    }

    #[test]
    fn override_puts_a_value_in_place_of_what_was_before(
        base in file(), key in pick(OPTIONAL_KEYS), over in file(),
    ) {
        let value = over["services"]["a"].get(&key).cloned();
        prop_assume!(value.is_some());
        let tagged = format!("services: {{a: {{{key}: !override {}}}}}", value.clone().unwrap_or_default());
        let mut expected = base.clone();
        expected["services"]["a"][&key] = value.unwrap_or_default();
        prop_assert_eq!(merged(&[base.to_string(), tagged]), merged(&[expected.to_string()]));
    }

    #[test]
    fn extending_is_merging(base in file(), over in file()) {
        let [base, over] = [&base, &over].map(|file| file["services"]["a"].clone());
        let networks = json!({"n1": {}, "n2": {}});
        let file = |service: &Value| json!({"services": {"a": service}, "networks": networks}).to_string();
        let expected = merged(&[file(&base), file(&over)]);
        let mut extender = over;
        extender["extends"] = json!({"service": "base"});
        let got = merged(&[json!({"services": {"base": base, "a": extender}, "networks": networks}).to_string()]);
        prop_assert_eq!(&got["services"]["a"], &expected["services"]["a"]);
    }
}

/// The variables of a service, in either form.
fn pairs(service: &Value) -> BTreeMap<String, Option<String>> {
    match &service["environment"] {
        Value::Object(map) => {
            let value = |value: &Value| value.as_str().map(str::to_owned);
            map.iter().map(|(key, text)| (key.clone(), value(text))).collect()
        }
        Value::Array(items) => {
            let texts = items.iter().filter_map(Value::as_str);
            let pair = |text: &str| match text.split_once('=') {
                Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                None => (text.to_owned(), None),
            };
            texts.map(pair).collect()
        }
        _ => BTreeMap::new(),
    }
}

/// What is mounted where, in either form.
fn sources(service: &Value) -> BTreeMap<String, String> {
    let mounts = service["volumes"].as_array().into_iter().flatten();
    let place = |mount: &Value| {
        if let Some(text) = mount.as_str() {
            let mut parts = text.split(':').map(str::to_owned);
            let source = parts.next().unwrap_or_default();
            return (parts.next().unwrap_or_default(), source);
        }
        let text = |key: &str| mount[key].as_str().unwrap_or_default().to_owned();
        (text("target"), text("source"))
    };
    mounts.map(place).collect()
}
