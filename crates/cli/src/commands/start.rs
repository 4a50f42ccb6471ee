//! `oxiray start`: the services of this machine, which stay when the command has ended.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use oxiray_net::Keyring;
use oxiray_observe::Session as Observed;
use oxiray_session::{Folder, Service, Session, Started, tail};
use oxiray_wire::cluster::ControlConfig;
use oxiray_wire::control::{ClusterConfig, DashboardConfig, NodeConfig};
use prost::Message;

use crate::commands::health::SystemConfig;
use crate::commands::home::{self, Home, Token};
use crate::commands::interpreter::Interpreter;
use crate::commands::offer::Offer;
use crate::commands::own_address;
use crate::commands::place::{is_same_place, split, with_port};
use crate::commands::process::{self, launch, ready};
use crate::commands::{refuse, stop};
use crate::exit::{Result, end};
use crate::print::{print, remark};

const DEFAULT_PORT: u16 = 6379;
/// Has the C library copy without `rep movsb`.
const PLAIN_COPIES: &str = "glibc.cpu.x86_rep_movsb_threshold=1000000000";
/// How long services may take to end when not all of them could be started.
const UNDO_PATIENCE: Duration = Duration::from_secs(5);

/// How to start.
#[derive(Args, Debug)]
pub struct Options {
    /// Start a cluster: its control service, and this machine's node.
    #[arg(long, conflicts_with = "address")]
    head: bool,
    /// Wait to take over from the head that keeps its state in the same Redis, with --head and
    /// --store; this machine's node joins its cluster.
    #[arg(long)]
    standby: bool,
    /// Join the cluster whose head is at HOST:PORT; of several heads, with commas, the one that
    /// reigns.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// Port of the control service, with --head; 0: any [default: 6379].
    #[arg(long)]
    port: Option<u16>,
    /// The address at which other machines reach this one [default: found out].
    #[arg(long, value_name = "IP")]
    node_ip_address: Option<IpAddr>,
    /// Port of the node service; 0: any.
    #[arg(long, alias = "node-port", default_value_t = 0, value_name = "PORT")]
    node_manager_port: u16,
    #[command(flatten)]
    offer: Offer,
    /// Where the control service keeps its state, with --head: a path or a URL [default: a file
    /// that is removed by `oxiray stop`].
    #[arg(long)]
    store: Option<String>,
    #[command(flatten)]
    system: SystemConfig,
    #[command(flatten)]
    token: Token,
    /// Where the node's directory, with sockets and logs, is made.
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
    /// Stay until the node ends; Ctrl-C ends it.
    #[arg(long)]
    block: bool,
    #[command(flatten)]
    dashboard: Dashboard,
    #[command(flatten)]
    for_ray: ForRay,
    /// For tests: what the directory with the cluster's keyring and state is called.
    #[arg(long, hide = true)]
    cluster_name: Option<String>,
    /// For tests: also if a node of the same cluster runs here already.
    #[arg(long, hide = true)]
    allow_many: bool,
    /// For tests: services end when standard input does; prints the node's file.
    #[arg(long, hide = true)]
    end_with_stdin: bool,
}

/// The dashboard, which the head has.
#[derive(Args, Debug)]
struct Dashboard {
    /// Whether there is one, with --head [default: true].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    include_dashboard: Option<bool>,
    /// Where it is served, with --head; 0.0.0.0 is wherever this machine is reached, and not
    /// encrypted [default: 127.0.0.1].
    #[arg(long, value_name = "HOST")]
    dashboard_host: Option<String>,
    /// Its port, with --head; 0: any [default: 8265, or the next free one].
    #[arg(long, value_name = "PORT")]
    dashboard_port: Option<u16>,
}

impl Dashboard {
    fn config(&self, python_version: &str) -> Option<DashboardConfig> {
        (self.include_dashboard != Some(false)).then(|| DashboardConfig {
            host: self.dashboard_host.clone().unwrap_or_default(),
            port: self.dashboard_port.map(u32::from),
            is_required: self.is_asked_for(),
            python_version: python_version.to_owned(),
        })
    }

    fn is_asked_for(&self) -> bool {
        self.include_dashboard == Some(true)
            || self.dashboard_host.is_some()
            || self.dashboard_port.is_some()
    }
}

/// Options of `ray start` that change nothing here.
#[derive(Args, Debug)]
struct ForRay {
    #[arg(long, hide = true)]
    disable_usage_stats: bool,
    #[arg(long, hide = true)]
    node_name: Option<String>,
    #[arg(long, hide = true)]
    object_manager_port: Option<u16>,
    #[arg(long, hide = true)]
    ray_client_server_port: Option<u16>,
    #[arg(long, hide = true)]
    metrics_export_port: Option<u16>,
    #[arg(long, hide = true)]
    min_worker_port: Option<u16>,
    #[arg(long, hide = true)]
    max_worker_port: Option<u16>,
    #[arg(short, long, hide = true)]
    verbose: bool,
    #[arg(long, hide = true)]
    log_style: Option<String>,
}

/// Starts what is wanted.
pub fn run(options: &Options) -> ExitCode {
    end(start(options))
}

fn start(options: &Options) -> Result<()> {
    if options.head == options.address.is_some() {
        refuse(
            "give --head to start a cluster, or --address=HOST:PORT to join the one whose head is \
             there",
        )?;
    }
    if options.address.is_some() && options.port.is_some() {
        refuse("--port is for --head; --node-manager-port is the port of a node")?;
    }
    if options.address.is_some() && options.store.is_some() {
        refuse("--store is for --head: the control service keeps the state")?;
    }
    if options.address.is_some() && options.system.is_given() {
        refuse("--system-config is for --head: the control service goes by it")?;
    }
    if options.standby {
        check_standby(options)?;
    }
    // Checked before anything is started.
    options.system.health()?;
    options.system.warn()?;
    options.offer.labels()?;
    options.offer.config("", options.head && !options.standby)?;
    warn(options);
    let folder = Folder::open_or_make()?;
    // Two commands at a time would each believe to be the first.
    let lock = if options.allow_many { None } else { Some(folder.lock()?) };
    // From here on there is something to undo. Not before: the lock may be waited for.
    let mut begun = Begun::new(folder, oxiray_sys::termination::termination_pipe()?);
    let (started, said) = match &options.address {
        None => begun.head(options)?,
        Some(address) => begun.member(options, address)?,
    };
    begun.folder.save(&started)?;
    let asked = begun.done();
    drop(lock);
    let printed = print(&if options.end_with_stdin { started.text() } else { said });
    if options.block {
        // Whoever reads may have enough: what was started stays.
        block(&Folder::open_or_make()?, &started, asked)?;
    }
    printed
}

/// A standby takes over what is where both machines reach it.
fn check_standby(options: &Options) -> io::Result<()> {
    if !options.head {
        refuse("--standby is for --head: it waits to be one")?;
    }
    let store = options.store.as_deref().unwrap_or_default();
    if store.starts_with("redis://") || store.starts_with("rediss://") {
        return Ok(());
    }
    refuse(
        "--standby takes over the state that its head keeps in Redis: start both with the same \
         --store=redis://HOST:PORT. There is no standby without Redis",
    )
}

fn warn(options: &Options) {
    if options.token.insecure {
        remark(
            "Warning: --insecure: nothing is encrypted, and whoever reaches the ports of this \
             machine can run programs as you. Leave it out unless the network is yours alone.",
        );
    }
    if !options.head && options.dashboard.is_asked_for() {
        remark("Note: the dashboard is on the head; what is said about it here has no effect.");
    }
}

/// What was begun; undone when dropped.
struct Begun {
    folder: Folder,
    /// Readable when this command is asked to end; taken when all went well.
    asked: Option<OwnedFd>,
    services: Vec<Child>,
    /// In the folder, that nobody needs afterwards.
    files: Vec<String>,
    /// That was made.
    session: Option<Session>,
    /// The name of the cluster's directory, if it was made.
    home: Option<String>,
    /// The keyring that was there before, and where.
    keyring: Option<(PathBuf, Keyring)>,
}

impl Begun {
    fn new(folder: Folder, asked: OwnedFd) -> Self {
        Self {
            folder,
            asked: Some(asked),
            services: Vec::new(),
            files: Vec::new(),
            session: None,
            home: None,
            keyring: None,
        }
    }

    /// A cluster of which this machine is the head, or what is missing of one.
    fn head(&mut self, options: &Options) -> io::Result<(Started, String)> {
        let port = options.port.unwrap_or(DEFAULT_PORT);
        let of_port = format!(":{port}");
        let earlier =
            self.folder.started().into_iter().find(|started| {
                port != 0 && started.is_head && started.address.ends_with(&of_port)
            });
        match earlier {
            Some(earlier) if earlier.node().and(earlier.control(&self.folder)).is_some() => {
                refuse(format!(
                    "already running: the head of the cluster at {}. Run `oxiray stop` first, or \
                 choose another port with --port.",
                    earlier.address
                ))
            }
            Some(earlier) if earlier.node().is_some() => self.control_again(options, earlier),
            Some(earlier) => self.node_again(options, earlier),
            None => self.new_head(options, port),
        }
    }

    fn new_head(&mut self, options: &Options, port: u16) -> io::Result<(Started, String)> {
        let session_dir = self.make_session(options)?;
        let ip = options.node_ip_address.unwrap_or_else(own_address::own);
        if ip.is_loopback() && options.node_ip_address.is_none() {
            remark(
                "Warning: this machine is in no network, so that the cluster is at 127.0.0.1 and \
                 no other machine can join it. --node-ip-address says another address.",
            );
        }
        let ip = ip.to_string();
        let name = match port {
            0 => session_dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            port => port.to_string(),
        };
        let home = self.home(options, &name)?;
        let store = match &options.store {
            Some(store) => {
                Home::comes_back(&self.folder, &home.name)?;
                absolute(store)?
            }
            None => home.store().display().to_string(),
        };
        let mut started = Started {
            address: with_port(&ip, port),
            is_head: true,
            is_standby: options.standby,
            keyring: match options.standby {
                true => home.keyring_of_member(&options.token)?,
                false => home.keyring_of_head(&options.token)?,
            },
            store,
            owns_store: options.store.is_none(),
            cluster: home.name.clone(),
            session_dir,
            ..Started::default()
        };
        self.control(options, &home, &mut started)?;
        self.node(options, &ip, &mut started)?;
        let said = welcome(&started)?;
        Ok((started, said))
    }

    /// The control service of a head is gone, its node is not.
    fn control_again(
        &mut self,
        options: &Options,
        mut started: Started,
    ) -> io::Result<(Started, String)> {
        let home = Home::make(&self.folder, &started.cluster)?;
        started.is_standby = options.standby;
        self.control(options, &home, &mut started)?;
        let said = format!(
            "The control service of {} was gone, and runs again; the node had gone on.\n",
            started.address
        );
        Ok((started, said))
    }

    /// The node of a head is gone, its control service is not.
    fn node_again(&mut self, options: &Options, earlier: Started) -> io::Result<(Started, String)> {
        let mut started = Started { session_dir: self.make_session(options)?, ..earlier.clone() };
        let ip = earlier.address.rsplit_once(':').map_or("", |(ip, _)| ip).to_owned();
        self.node(options, &ip, &mut started)?;
        self.folder.forget(&earlier.name());
        let said = format!(
            "The control service of {} still ran; its node was gone, and a new one runs.\n\n{}",
            started.address,
            welcome(&started)?
        );
        Ok((started, said))
    }

    /// A node of a cluster whose head is elsewhere.
    fn member(&mut self, options: &Options, addresses: &str) -> io::Result<(Started, String)> {
        let all = addresses.split(',').map(|one| split(one).map(|_| one));
        let all = all.collect::<io::Result<Vec<&str>>>()?;
        let address = all[0];
        let (host, port) = split(address)?;
        let here = self.folder.started();
        let mut same = here.iter().filter(|started| is_same_place(&started.address, address));
        if let Some(node) = same.find(|node| !options.allow_many && node.node().is_some()) {
            return refuse(format!(
                "already running: a node of the cluster at {}. Run `oxiray stop` first.",
                node.address
            ));
        }
        let name = format!("{}-{port}", host.trim_matches(['[', ']']));
        let home = self.home(options, &name)?;
        let ip =
            options.node_ip_address.unwrap_or_else(|| own_address::towards(address)).to_string();
        let mut started = Started {
            address: address.to_owned(),
            keyring: home.keyring_of_member(&options.token)?,
            cluster: home.name,
            session_dir: self.make_session(options)?,
            ..Started::default()
        };
        self.node_of(&all.join(","), options, &ip, &mut started)?;
        let said = format!(
            "Node {} has joined the cluster at {address}.\n\n{}",
            started.node_address, CONNECT
        );
        Ok((started, said))
    }

    fn home(&mut self, options: &Options, name: &str) -> io::Result<Home> {
        let name = options.cluster_name.as_deref().unwrap_or(name);
        if self.folder.cluster(name).is_err() {
            self.home = Some(name.to_owned());
        }
        let home = Home::make(&self.folder, name)?;
        let keyring = home.path.join("keyring");
        self.keyring = home::load(&keyring).ok().map(|before| (keyring, before));
        Ok(home)
    }

    fn control(&mut self, options: &Options, home: &Home, started: &mut Started) -> io::Result<()> {
        let (ip, port) = split(&started.address)?;
        // What programs of this machine alone reach needs no other address.
        let listen = match ip.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => with_port(&ip.to_string(), port),
            Ok(IpAddr::V6(_)) => with_port("::", port),
            _ => with_port("0.0.0.0", port),
        };
        let config = ControlConfig {
            listen,
            address: started.address.clone(),
            keyring: started.keyring.display().to_string(),
            store: started.store.clone(),
            home: home.path.display().to_string(),
            health: Some(options.system.health()?),
            standby: started.is_standby,
        };
        let errors = home.path.join("control.err");
        let (child, address) = self.launch(options, "control", &config.encode_to_vec(), &errors)?;
        started.control_pid = process::number_and_start(child);
        started.address = address;
        Ok(())
    }

    fn node(&mut self, options: &Options, ip: &str, started: &mut Started) -> io::Result<()> {
        self.node_of(&started.address.clone(), options, ip, started)
    }

    /// `control`: where its control service may be, with commas.
    fn node_of(
        &mut self,
        control: &str,
        options: &Options,
        ip: &str,
        started: &mut Started,
    ) -> io::Result<()> {
        let python = Interpreter::find()?;
        let labels = options.offer.labels()?.into_iter().collect();
        let is_head = started.is_head && !started.is_standby;
        let config = NodeConfig {
            python: python.program,
            session_dir: started.session_dir.display().to_string(),
            log_to_driver: true,
            cluster: Some(ClusterConfig {
                control: control.to_owned(),
                keyring: started.keyring.display().to_string(),
                node_ip: ip.to_owned(),
                port: options.node_manager_port.into(),
                labels,
                is_head,
                python_version: python.version.clone(),
            }),
            dashboard: started.is_head.then(|| options.dashboard.config(&python.version)).flatten(),
            ..options.offer.config(ip, is_head)?
        };
        let log = started.session_dir.join("logs/oxirayd.err");
        let (child, address) = self.launch(options, "node", &config.encode_to_vec(), &log)?;
        started.node_pid = process::number_and_start(child);
        started.node_address = address;
        let observed = Observed::open(&started.session_dir).map_err(io::Error::other)?;
        started.node_id = observed.node_id();
        Ok(())
    }

    /// Starts a service. Its process, and what it said.
    fn launch(
        &mut self,
        options: &Options,
        what: &str,
        config: &[u8],
        log: &Path,
    ) -> io::Result<(u32, String)> {
        let file = format!("{what}-{}.config", std::process::id());
        self.folder.directory().write(&file, config)?;
        self.files.push(file.clone());
        let file = self.folder.path().join(file);
        let mut command = Command::new(program()?);
        command.arg(what).arg("--config").arg(&file).env_remove(oxiray_settings::TOKEN.name);
        if options.end_with_stdin {
            command.env(oxiray_settings::END_WITH_STDIN.name, "1").stdin(Stdio::inherit());
        } else {
            command.env_remove(oxiray_settings::END_WITH_STDIN.name).stdin(Stdio::null());
        }
        // A node copies every byte that it decrypts, in records of 16 KB. Some processors take
        // twice as long for that with the instruction that the C library prefers. Only where
        // nobody has said otherwise; workers do not inherit it.
        if std::env::var_os("GLIBC_TUNABLES").is_none() {
            command.env("GLIBC_TUNABLES", PLAIN_COPIES).env(oxiray_settings::TUNED.name, "1");
        }
        let (child, said) = launch(&mut command, log, self.asked.as_ref())?;
        let pid = child.id();
        self.services.push(child);
        Ok((pid, said))
    }

    /// Makes the directory of a new node. What earlier ones left that were killed goes.
    fn make_session(&mut self, options: &Options) -> io::Result<PathBuf> {
        let made = match &options.temp_dir {
            Some(path) => make_session_in(&Folder::of_user(path)?)?,
            None => make_session_in(&self.folder)?,
        };
        let path = made.path().to_owned();
        self.session = Some(made);
        Ok(path)
    }

    /// All went well: the services stay. What tells that this command is to end.
    fn done(mut self) -> Option<OwnedFd> {
        self.services.clear();
        (self.session, self.home, self.keyring) = (None, None, None);
        self.asked.take()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let services: Vec<_> = self.services.iter().filter_map(process::of_child).collect();
        process::end(services, UNDO_PATIENCE);
        for file in &self.files {
            self.folder.directory().remove(file);
        }
        if let Some(session) = self.session.take() {
            session.discard();
        }
        if let Some(home) = &self.home {
            self.folder.remove_cluster(home);
        }
        if let Some((path, keyring)) = &self.keyring {
            let _ = keyring.save(path);
        }
    }
}

/// Waits for the end of the node, or ends it when asked to.
fn block(folder: &Folder, started: &Started, asked: Option<OwnedFd>) -> io::Result<()> {
    let log = |name: &str| started.session_dir.join("logs").join(name);
    let services = [started.node(), started.control(folder)];
    let expected = if started.is_head { 2 } else { 1 };
    let services: Vec<Service> = services.into_iter().flatten().collect();
    let all_run = services.len() == expected;
    let ended = services.len();
    let mut descriptors: Vec<BorrowedFd<'_>> = services.iter().map(AsFd::as_fd).collect();
    descriptors.extend(asked.as_ref().map(AsFd::as_fd));
    let ready = if all_run { wait(&descriptors) } else { Vec::new() };
    let log = tail(&log("oxirayd.err"), 2000);
    let which = if started.node().is_some() { "control" } else { "node" };
    stop::stop(folder, std::slice::from_ref(started), stop::GRACE);
    if ready.contains(&ended) {
        return Ok(());
    }
    refuse(format!("the {which} service ended unasked, and all of this node with it. {log}"))
}

fn wait(descriptors: &[BorrowedFd<'_>]) -> Vec<usize> {
    loop {
        let ready = ready(descriptors, None);
        if !ready.is_empty() {
            return ready;
        }
    }
}

fn make_session_in(folder: &Folder) -> io::Result<Session> {
    folder.sweep();
    folder.make_session(&Folder::new_name())
}

/// `oxirayd`, which is beside this program.
fn program() -> io::Result<PathBuf> {
    match oxiray_settings::OXIRAYD.path() {
        Some(path) => Ok(path.into()),
        None => Ok(std::env::current_exe()?.with_file_name("oxirayd")),
    }
}

/// A path that means the same from wherever the service is started again; a URL as it is.
fn absolute(store: &str) -> io::Result<String> {
    if store.contains(':') {
        return Ok(store.to_owned());
    }
    Ok(std::path::absolute(store)?.display().to_string())
}

const CONNECT: &str = "\
Programs on this machine connect with
  import oxiray
  oxiray.init()

See the cluster:  oxiray status
Stop this node:   oxiray stop
";

/// What the head's user needs to know.
fn welcome(started: &Started) -> io::Result<String> {
    if started.is_standby {
        let heads = started.heads();
        let reigns = heads.iter().find(|head| **head != started.address);
        return Ok(format!(
            "The control service at {} waits to take over from the one at {}, and this machine's \
             node {} has joined\nits cluster.\n\n{CONNECT}",
            started.address,
            reigns.unwrap_or(&started.address),
            started.node_address
        ));
    }
    let mut text = format!(
        "The cluster at {} runs, with this machine's node {}.\n\nOther machines join with\n  {}\n",
        started.address,
        started.node_address,
        join_command(started)?
    );
    if !started.keyring.as_os_str().is_empty() {
        text.push_str(
            "The token lets whoever has it run programs here. Others can see a command's arguments \
             in `ps`:\nOXIRAY_TOKEN or --token-file keep it from them.\n",
        );
    }
    if let Some(url) = Session::at(&started.session_dir)?.dashboard_url() {
        text.push_str(&format!("\nDashboard:  {url}\n"));
    }
    Ok(format!("{text}\n{CONNECT}"))
}

/// The command by which other machines join.
pub(super) fn join_command(started: &Started) -> io::Result<String> {
    let how = if started.keyring.as_os_str().is_empty() {
        "--insecure".to_owned()
    } else {
        format!("--token='{}'", home::load(&started.keyring)?.current)
    };
    Ok(format!("oxiray start --address='{}' {how}", started.address))
}
