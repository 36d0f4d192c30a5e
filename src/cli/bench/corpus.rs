//! What `compose config` is timed with: the corpus of `COMPOSE_CORPUS`, and one file of many services.
//! `benches/compose.rs` is made of this file, too; it knows the library's loader and nothing of the command.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gym_sandbox::compose::{ComposeLoader, LoadOptions, OutsidePaths, Source, Strictness};

/// Its value is a list of folders, separated by colons.
pub(super) const VARIABLE: &str = "COMPOSE_CORPUS";

/// The project of every case.
pub(super) const PROJECT: &str = "bench";

/// One project of files.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// Where its files are.
    pub(super) folder: PathBuf,
    /// Their names. None for those that are looked for.
    pub(super) files: Vec<String>,
    /// The variables of its files.
    pub(super) variables: Vec<(String, String)>,
}

impl Case {
    /// A case of the corpus, by what is said of it beside its files.
    fn read(folder: PathBuf) -> Option<Self> {
        let described = std::fs::read_to_string(folder.join("case.json")).ok()?;
        let described: serde_json::Value = serde_json::from_str(&described).ok()?;
        let mut files: Vec<String> = described["file"]
            .as_str()
            .map(str::to_owned)
            .into_iter()
            .collect();
        let arguments = described["args"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let named = arguments.windows(2).filter(|pair| pair[0] == "-f");
        files.extend(named.filter_map(|pair| pair[1].as_str().map(str::to_owned)));
        let variables = described["env"].as_object().into_iter().flatten();
        let variables = variables
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        Some(Self {
            folder,
            files,
            variables,
        })
    }

    /// It for the loader, as docker compose would take it.
    pub(super) fn loader(&self) -> ComposeLoader {
        let mut options = LoadOptions::new()
            .with_working_directory(&self.folder)
            .with_project_name(PROJECT)
            .with_outside_paths(OutsidePaths::Allow)
            .with_strictness(Strictness::Compatible)
            .with_profile("*");
        for file in &self.files {
            options = options.with_file(Source::path(file));
        }
        for (name, value) in &self.variables {
            options = options.with_variable(name, value);
        }
        ComposeLoader::new(options)
    }
}

/// All cases below the folders of [`VARIABLE`], in the order of their places. None when it is not set.
pub(super) fn cases() -> Option<Vec<Case>> {
    let folders = std::env::var(VARIABLE).ok()?;
    let mut found = Vec::new();
    for folder in folders.split(':').filter(|folder| !folder.is_empty()) {
        find(Path::new(folder), &mut found);
    }
    found.sort();
    Some(found.into_iter().filter_map(Case::read).collect())
}

fn find(folder: &Path, cases: &mut Vec<PathBuf>) {
    if folder.join("case.json").is_file() {
        cases.push(folder.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
        find(&entry.path(), cases);
    }
}

/// Writes a file of `count` services, each with the keys real files use most.
pub(super) fn many_services(count: usize) -> String {
    let mut text = String::from("x-common: &common\n  init: true\n  restart: always\n\nservices:\n");
    for index in 0..count {
        let dependency = index.checked_sub(1).map_or(String::new(), |previous| {
            format!("    depends_on:\n      s{previous}: {{condition: service_started}}\n")
        });
        let _ = write!(
            text,
            "  s{index}:\n    <<: *common\n    image: \"registry.example/app:${{TAG:-latest}}\"\n    \
             command: sh -c 'echo {index} && sleep infinity'\n    environment:\n      - INDEX={index}\n      \
             - NAME=${{NAME:-s{index}}}\n    ports: [\"{port}:80\"]\n    volumes: [\"data:/data\", \"./src:/src:ro\"]\n    \
             mem_limit: 512m\n    cpus: 0.5\n    networks: [back]\n    healthcheck:\n      \
             test: [CMD, curl, -f, http://localhost]\n      interval: 1m30s\n{dependency}",
            port = 10_000 + index,
        );
    }
    text + "volumes:\n  data:\nnetworks:\n  back:\n"
}
