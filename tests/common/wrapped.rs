//! A provider that wraps another one, its field `inner`: the capabilities that it hands through as they are.

/// Accessors that give what the inner provider gives.
macro_rules! hand_through {
    ($($accessor:ident: $capability:ident),* $(,)?) => { $(
        fn $accessor(&self) -> Option<&dyn gym_sandbox::provider::$capability> {
            self.inner.$accessor()
        }
    )* };
}

/// Those that no wrapper of the tests has an own one of.
macro_rules! hand_through_most {
    () => {
        fn cleanup(&self) -> Option<&gym_sandbox::provider::Reaper> {
            self.inner.cleanup()
        }

        hand_through! {
            as_endpoint: EndpointProvider,
            as_inspect: InspectProvider,
            as_files: FilesProvider,
            as_list: ListProvider,
            as_sweep: SweepProvider,
            as_pause: PauseProvider,
            as_connectable: ConnectableProvider,
            as_pty: PtyProvider,
            as_pty_attach: PtyAttachProvider,
            as_logs: LogsProvider,
            as_stats: StatsProvider,
            as_runtime_requirements: RuntimeRequirementsProvider,
        }
    };
}

pub(crate) use {hand_through, hand_through_most};
