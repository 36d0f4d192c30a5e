//! The agent's one loop: waits for clients, runners, pipes and timers, and serves each a little at a time. Nothing in
//! here may wait anywhere else, and nothing wakes it while there is nothing to do.

mod client;
mod command;
mod commands;
mod doors;
mod files;
mod lost;
mod naming;
mod outbox;
mod refusal;
mod reports;
mod ring;
mod sessions;
mod streams;
mod timers;
mod writing;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};

use self::client::{Client, ClientId, Origin};
use self::command::{Command, Phase};
use self::doors::Doors;
pub(crate) use self::doors::{DONE, LEAVES, WAITS};
use self::files::FileTask;
use self::lost::{LostTree, OomKills};
use self::naming::Unwanted;
pub(crate) use self::refusal::{fail, say};
use self::timers::Timers;
use crate::context::Context;
use crate::link::Order;
use crate::options::{Mode, Options};
use crate::probe;
use crate::program::{Program, STOPPING};
use crate::protocol::{AgentHello, AgentMessage, StartStage};
use crate::sys::{self, Ended, POLLERR, POLLHUP, POLLIN, POLLOUT, PollFd, SignalSet, signal};

/// The exit code of a sandbox whose time was over.
const TIME_OVER: i32 = 124;

/// The resident agent.
pub(crate) struct Server {
    context: Context,
    hello: AgentHello,
    null: File,
    doors: Doors,
    timers: Timers,
    clients: BTreeMap<ClientId, Client>,
    commands: BTreeMap<u64, Command>,
    files: BTreeMap<u64, FileTask>,
    lost: Vec<LostTree>,
    unwanted: Vec<Unwanted>,
    next_number: u64,
    oom_kills: OomKills,
    /// The program that this agent runs as the main process.
    entrypoint: Option<i32>,
    buffer: Vec<u8>,
}

/// What a descriptor that is waited for belongs to.
#[derive(Debug, Clone, Copy)]
enum Source {
    Link(u64),
    Output(u64, usize),
    Input(u64),
    Name(u64),
    ClientInput(ClientId),
    ClientOutput(ClientId),
    Tether(ClientId),
    Listener,
    Visitor(usize),
}

impl Server {
    /// Starts to serve; does not return.
    pub(crate) fn run(options: &Options) -> ! {
        refusal::check_stack();
        let context = Context::read(options.keep_home);
        sys::note_signals(STOPPING.into_iter().chain([signal::CHLD]));
        sys::block_signals(&SignalSet::all_but(&[]));
        // For orphans of a runner that was killed; PID 1 has them anyway.
        let _ = sys::become_subreaper();
        let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") else {
            fail("cannot open /dev/null");
        };
        let doors = match Doors::open(options) {
            Ok(doors) => doors,
            Err(reason) => fail(&reason),
        };
        let mut server = Self {
            hello: probe::hello(&context),
            timers: Timers::new(options),
            context,
            null,
            doors,
            clients: BTreeMap::new(),
            commands: BTreeMap::new(),
            files: BTreeMap::new(),
            lost: Vec::new(),
            unwanted: Vec::new(),
            next_number: 1,
            oom_kills: OomKills::until_now(),
            entrypoint: None,
            buffer: client::read_buffer(),
        };
        server.begin(options);
        loop {
            server.turn();
        }
    }

    fn begin(&mut self, options: &Options) {
        if !options.entrypoint.is_empty() {
            self.start_entrypoint(options);
        }
        if options.bootstrap
            && let (Ok(input), Ok(output)) = (sys::inherited(0), sys::inherited(1))
        {
            // Their numbers must stay taken, and no command may get them.
            if let (Ok(first), Ok(second)) = (input.try_clone(), output.try_clone()) {
                self.adopt([first, second], None, Origin::Bootstrap);
            }
            std::mem::forget((input, output));
        }
        if options.bootstrap || !options.entrypoint.is_empty() || options.mode == Mode::Serve {
            // The main program's streams are its own: they have to end when it closes them.
            for standard in 0..3 {
                if standard < 2 || !options.bootstrap {
                    let _ = sys::duplicate_to(std::os::fd::AsRawFd::as_raw_fd(&self.null), standard);
                }
            }
        }
        // Nothing that the agent keeps open may keep a folder of the sandbox busy.
        let _ = std::env::set_current_dir("/");
        // Above what it was started with: each command needs four descriptors here. Commands get the old limit.
        sys::set_descriptor_limit(self.context.descriptor_limit.raised());
        self.doors.say_ready();
    }

    fn start_entrypoint(&mut self, options: &Options) {
        sys::note_signals((1..=signal::LAST).filter(|number| is_passed_on(*number)));
        let home = (!options.keep_home).then(|| std::env::var_os("HOME")).flatten();
        let home = home.map(std::os::unix::ffi::OsStringExt::into_vec);
        let started = Program::of_entrypoint(&options.entrypoint, home, &self.context)
            .and_then(|program| program.start());
        match started {
            Ok(pid) => self.entrypoint = Some(pid),
            Err((stage, errno)) => {
                let program = String::from_utf8_lossy(&options.entrypoint[0]).into_owned();
                let cause = std::io::Error::from_raw_os_error(errno);
                say(&format!("cannot run `{program}`: {cause}"));
                sys::exit_now(if stage == StartStage::NotFound { 127 } else { 126 })
            }
        }
    }

    /// Waits once and does what there is to do.
    fn turn(&mut self) {
        let (mut waiting, sources) = self.what_to_wait_for();
        let timeout = self.next_timeout();
        sys::wait_ready(&mut waiting, timeout, &self.mask());
        // Before all else: after a pause, what is over its time must not do one more thing.
        self.check_times();
        self.take_signals();
        for (descriptor, source) in waiting.iter().zip(&sources) {
            if descriptor.ready != 0 {
                self.serve(*source, descriptor.ready);
            }
        }
        self.look_for_drains();
        self.read_files();
        self.send_sessions();
        self.pursue_lost();
        for client in self.clients.values_mut() {
            if !client.outbox.is_empty() {
                client.flush();
            }
        }
        self.clear_away();
    }

    fn mask(&self) -> SignalSet {
        let passed: Vec<i32> = match self.entrypoint {
            Some(_) => (1..=signal::LAST)
                .filter(|number| is_passed_on(*number))
                .collect(),
            None => STOPPING.into(),
        };
        SignalSet::all_but(&[&passed[..], &[signal::CHLD]].concat())
    }

    fn what_to_wait_for(&self) -> (Vec<PollFd>, Vec<Source>) {
        let mut waiting = Vec::new();
        let mut sources = Vec::new();
        let mut add = |descriptor: PollFd, source| {
            waiting.push(descriptor);
            sources.push(source);
        };
        // Links first: that is the order in which what is ready is served, and exits matter most.
        for (number, command) in &self.commands {
            if let Some(link) = &command.link {
                add(PollFd::new(link, POLLIN), Source::Link(*number));
            }
        }
        for (id, client) in &self.clients {
            if !client.outbox.is_flooded() {
                add(PollFd::new(&client.input, POLLIN), Source::ClientInput(*id));
            }
            let events = if client.outbox.is_empty() { 0 } else { POLLOUT };
            add(PollFd::new(&client.output, events), Source::ClientOutput(*id));
            if let Some(tether) = &client.tether {
                add(PollFd::new(tether, POLLIN), Source::Tether(*id));
            }
        }
        // What a command does may be seen before its runner has said that it runs; it waits for that.
        for (number, command) in self
            .commands
            .iter()
            .filter(|(_, command)| command.phase != Phase::Starting)
        {
            let client = command.client.and_then(|id| self.clients.get(&id));
            let is_full = client.is_some_and(|client| client.outbox.is_full());
            for (index, output) in command.outputs.iter().enumerate() {
                if let Some(pipe) = &output.pipe
                    && output.wants_to_read(is_full)
                    && command.has_room(index)
                {
                    add(PollFd::new(pipe, POLLIN), Source::Output(*number, index));
                }
            }
            if let Some(input) = &command.input {
                let events = if input.wants_to_write() { POLLOUT } else { 0 };
                add(PollFd::new(&input.pipe, events), Source::Input(*number));
            }
        }
        for (number, worker) in self.names_under_way() {
            add(PollFd::new(worker, POLLIN), Source::Name(number));
        }
        self.doors.wait_for(&mut add);
        (waiting, sources)
    }

    fn serve(&mut self, source: Source, ready: i16) {
        match source {
            Source::Link(number) => self.hear_runner(number),
            Source::Output(number, index) => self.read_output(number, index),
            Source::Input(number) => self.feed(number, ready & (POLLERR | POLLHUP) != 0),
            Source::Name(number) => self.hear_name(number),
            Source::ClientInput(id) => self.hear_client(id),
            Source::ClientOutput(id) => {
                if let Some(client) = self.clients.get_mut(&id)
                    && ready & (POLLERR | POLLHUP) != 0
                {
                    client.is_over = true;
                }
            }
            Source::Tether(id) => {
                // The process only waits: that it says anything means that it has ended.
                if let Some(client) = self.clients.get_mut(&id) {
                    client.is_over = true;
                }
            }
            Source::Listener => self.doors.accept(),
            Source::Visitor(index) => {
                if let Some((streams, tether)) = self.doors.receive(index) {
                    self.adopt(streams, tether, Origin::HandedOver);
                }
            }
        }
    }

    fn take_signals(&mut self) {
        let arrived = sys::take_signals();
        if arrived == 0 {
            return;
        }
        while let Ok(Some(ended)) = sys::reap_or_see_stopped() {
            if ended.is_stopped() {
                self.wake_runner(ended.pid);
            } else {
                self.note_end(&ended);
            }
        }
        for number in (1..=signal::LAST).filter(|number| arrived & (1 << (number - 1)) != 0) {
            match self.entrypoint {
                Some(pid) if number != signal::CHLD => drop(sys::send_signal(pid, number)),
                None if STOPPING.contains(&number) => self.end(128 + number),
                _ => {}
            }
        }
    }

    /// A command of the same user may stop its runner, which would hide the command's end.
    fn wake_runner(&self, pid: i32) {
        if self.commands.values().any(|command| command.runner == pid) {
            let _ = sys::send_signal(pid, signal::CONT);
        }
    }

    fn note_end(&mut self, ended: &Ended) {
        if self.entrypoint == Some(ended.pid) {
            let killer = ended.status & 0x7f;
            let code = if killer == 0 {
                (ended.status >> 8) & 0xff
            } else {
                128 + killer
            };
            self.end(code);
        }
        // A runner's end shows at its link, where what it said before comes first.
    }

    /// Ends the agent, and with it the sandbox where it is its main process; elsewhere all that it has started.
    fn end(&mut self, code: i32) -> ! {
        for command in self.commands.values_mut() {
            command.order(Order::Kill(0));
        }
        for client in self.clients.values_mut() {
            client.flush();
        }
        sys::exit_now(code)
    }

    /// A new client: says hello at once.
    fn adopt(
        &mut self,
        streams: [std::os::fd::OwnedFd; 2],
        tether: Option<std::os::unix::net::UnixStream>,
        origin: Origin,
    ) {
        let Ok(mut client) = Client::new(streams, tether, origin) else {
            return;
        };
        let mut hello = self.hello.clone();
        self.timers.describe(&mut hello);
        client.tell(0, &AgentMessage::Hello(hello));
        let id = self.number();
        self.clients.insert(id, client);
        if self.clients.len() > doors::MOST_CLIENTS
            && let Some(client) = self.clients.get_mut(&id)
        {
            client.refuse("there are too many clients");
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Forgets clients and commands that are over.
    fn clear_away(&mut self) {
        self.limit_ended_sessions();
        let over: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, client)| client.is_over)
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(client) = self.clients.remove(&id) {
                self.part_with(id, client);
            }
        }
        let over: Vec<u64> = self
            .commands
            .iter()
            .filter(|(_, command)| command.is_over())
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            self.forget_command(number);
        }
    }

    fn part_with(&mut self, id: ClientId, client: Client) {
        self.disconnect_commands(id);
        if let Some(mut tether) = client.tether {
            use std::io::Write;
            let _ = tether.write_all(&[doors::DONE]);
        }
        self.give_up_files(id);
        if client.origin == Origin::Dialled {
            self.doors.dial_again(client.has_greeted);
        }
    }
}

/// Signals that a main process would get and that the agent passes on: not those that are about the agent itself.
fn is_passed_on(number: i32) -> bool {
    const OWN: [i32; 10] = [4, 5, 7, 8, 9, 11, 13, 17, 19, 31];
    // 32 and 33 belong to the C library.
    !OWN.contains(&number) && number != 32 && number != 33
}
