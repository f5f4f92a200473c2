//! Findings of `weir doctor` about the machine.

use weir_record::{
    finding::{OfConnections, OfCpus, OfMemory, OfQuiet, OfRungs, OfSpeed, SharedPart},
    observation::Rung,
};

use crate::{
    format,
    language::{Language, localized},
    rung,
};

pub(super) fn of_cpus(language: Language, finding: OfCpus<'_>) -> String {
    match finding {
        OfCpus::CoresFound { allowed, online, cores, shared } => {
            let so = language.choose(match shared {
                SharedPart::Nothing => [
                    "server and generator get a core each",
                    "서버와 부하 생성기가 서로 다른 코어를 씀",
                    "服务器与负载生成器各占一个核心",
                ],
                SharedPart::Core => [
                    "server and generator share a core",
                    "서버와 부하 생성기가 한 코어를 나눠 씀",
                    "服务器与负载生成器共用一个核心",
                ],
                SharedPart::Cpu => [
                    "server and generator take turns on one CPU",
                    "서버와 부하 생성기가 CPU 하나를 번갈아 씀",
                    "服务器与负载生成器轮流使用一个 CPU",
                ],
            });
            localized!(
                language,
                "{allowed} of {online} CPUs allowed on {cores} physical cores: {so}",
                "물리 코어 {cores}개, CPU {online}개 중 {allowed}개 사용 가능: {so}",
                "{cores} 个物理核心，{online} 个 CPU 中可用 {allowed} 个：{so}",
            )
        }
        OfCpus::PinnedTo { server, load, refused, shared } => {
            let so = if refused.is_empty() {
                language
                    .choose(match shared {
                        SharedPart::Nothing => ["different cores", "서로 다른 코어", "不同的核心"],
                        SharedPart::Core => ["one core shared", "한 코어를 나눠 씀", "共用一个核心"],
                        SharedPart::Cpu => ["one CPU shared", "CPU 하나를 나눠 씀", "共用一个 CPU"],
                    })
                    .to_owned()
            } else {
                let refused = numbers(refused);
                localized!(
                    language,
                    "the kernel refuses to pin to {refused}",
                    "커널이 CPU {refused} 고정을 거부함",
                    "内核拒绝绑定到 {refused}",
                )
            };
            let (server, load) = (numbers(server), numbers(load));
            localized!(
                language,
                "server on CPU {server}, generator on CPU {load}: {so}",
                "서버 CPU {server}, 부하 생성기 CPU {load}: {so}",
                "服务器在 CPU {server}，负载生成器在 CPU {load}：{so}",
            )
        }
    }
}

pub(super) fn of_speed(language: Language, finding: OfSpeed<'_>) -> String {
    match finding {
        OfSpeed::NoCpuQuota => language
            .choose([
                "no CPU quota on this control group",
                "이 cgroup에는 CPU 할당량이 없음",
                "此 cgroup 没有 CPU 配额",
            ])
            .to_owned(),
        OfSpeed::CpuQuota { cpus } => localized!(
            language,
            "this control group is stopped after {cpus:.2} CPUs' worth of time: results show the quota",
            "이 cgroup은 CPU {cpus:.2}개만큼의 시간을 쓰면 멈춤. 할당량이 결과에 영향을 줌",
            "此 cgroup 用满 {cpus:.2} 个 CPU 的时间后会被暂停：配额会影响结果",
        ),
        OfSpeed::NoGovernor => language
            .choose([
                "no frequency governor visible: the host or the firmware decides",
                "주파수 거버너가 보이지 않음. 호스트나 펌웨어가 주파수를 결정함",
                "看不到调频策略：由宿主机或固件决定",
            ])
            .to_owned(),
        OfSpeed::Governor { name, follows_load: false } => name.clone(),
        OfSpeed::Governor { name, follows_load: true } => localized!(
            language,
            "{name}: frequency follows load, so a change of load changes the speed",
            "{name}: 주파수가 부하를 따라가므로 부하가 바뀌면 속도도 바뀜",
            "{name}：频率随负载变化，负载一变速度也变",
        ),
        OfSpeed::NoClockSource => language
            .choose(["the clock source cannot be read", "클럭 소스를 읽을 수 없음", "无法读取时钟源"])
            .to_owned(),
        OfSpeed::ClockSource { name, is_fast: true } => localized!(
            language,
            "{name}: the time is read without a system call",
            "{name}: 시스템 콜 없이 시각을 읽음",
            "{name}：读取时间不需要系统调用",
        ),
        OfSpeed::ClockSource { name, is_fast: false } => localized!(
            language,
            "{name}: every look at the clock is a system call",
            "{name}: 시각을 읽을 때마다 시스템 콜이 필요함",
            "{name}：每次读取时间都是一次系统调用",
        ),
    }
}

fn numbers(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn of_connections(language: Language, finding: OfConnections<'_>) -> String {
    match finding {
        OfConnections::DescriptorsFound { connections, allowed, raised_from, used } => {
            let unlimited = language.choose(["unlimited", "무제한", "无限制"]);
            let shown = |limit: Option<u64>| limit.map_or_else(|| unlimited.to_owned(), format::count);
            let raised = raised_from.map_or_else(String::new, |soft| {
                let soft = format::count(soft);
                localized!(
                    language,
                    " (Weir raises its own limit from {soft} to that)",
                    "(Weir가 자기 한도를 {soft}에서 거기까지 올림)",
                    "（Weir 会把自身限制从 {soft} 提高到该值）",
                )
            });
            let (connections, allowed, used) = (shown(*connections), shown(*allowed), format::count(*used));
            localized!(
                language,
                "{connections} connections per process: {allowed} descriptors allowed by `ulimit -Hn`{raised}, {used} in \
                 use",
                "프로세스당 연결 {connections}개: `ulimit -Hn`이 허용하는 디스크립터 {allowed}개{raised}, 사용 중 {used}개",
                "每进程 {connections} 个连接：`ulimit -Hn` 允许 {allowed} 个描述符{raised}，已用 {used} 个",
            )
        }
        OfConnections::LocalPorts { ports, connections } => {
            let (ports, connections) = (format::count(*ports), format::count(*connections));
            localized!(
                language,
                "{ports} local ports: a generator opens at most {connections} connections to one server address",
                "로컬 포트 {ports}개: 부하 생성기가 한 서버 주소로 열 수 있는 연결은 최대 {connections}개",
                "{ports} 个本地端口：负载生成器到一个服务器地址最多打开 {connections} 个连接",
            )
        }
        OfConnections::NoAcceptQueue => language
            .choose([
                "net.core.somaxconn cannot be read",
                "net.core.somaxconn을 읽을 수 없음",
                "无法读取 net.core.somaxconn",
            ])
            .to_owned(),
        OfConnections::AcceptQueue { connections_max } => {
            let most = format::count(*connections_max);
            localized!(
                language,
                "a listener queues at most {most} connections (somaxconn)",
                "리스너의 대기 큐에 쌓이는 연결은 최대 {most}개(somaxconn)",
                "监听套接字最多排队 {most} 个连接（somaxconn）",
            )
        }
    }
}

pub(super) fn of_memory(language: Language, finding: OfMemory<'_>) -> String {
    match finding {
        OfMemory::LockedMemoryFree { by_capability: true } => language
            .choose([
                "this process has CAP_IPC_LOCK: locked memory is not limited",
                "이 프로세스에 CAP_IPC_LOCK이 있어 잠금 메모리(memlock)에 제한이 없음",
                "本进程有 CAP_IPC_LOCK：锁定内存不受限",
            ])
            .to_owned(),
        OfMemory::LockedMemoryFree { by_capability: false } => language
            .choose(["locked memory is not limited", "잠금 메모리(memlock)에 제한이 없음", "锁定内存不受限"])
            .to_owned(),
        OfMemory::LockedMemory { bytes } => {
            let kib = format::count(bytes / 1024);
            localized!(
                language,
                "{kib} KiB of locked memory: bounds what io_uring may register",
                "잠금 메모리(memlock) 한도 {kib} KiB: io_uring에 등록할 수 있는 양을 제한함",
                "锁定内存上限 {kib} KiB：限制 io_uring 可注册的量",
            )
        }
        OfMemory::NoLockedMemory => language
            .choose([
                "the limit of locked memory cannot be read",
                "잠금 메모리(memlock) 한도를 읽을 수 없음",
                "无法读取锁定内存的限制",
            ])
            .to_owned(),
    }
}

pub(super) fn of_noise(language: Language, finding: OfQuiet<'_>) -> String {
    let seconds = |window_ns: &u64| *window_ns as f64 / 1e9;
    match finding {
        OfQuiet::Stolen { since_boot, now, window_ns } => {
            let (since_boot, now, seconds) = (100.0 * since_boot, 100.0 * now, seconds(window_ns));
            localized!(
                language,
                "the hypervisor took {since_boot:.2} % of CPU time since boot, {now:.2} % in the last {seconds:.1} s",
                "하이퍼바이저가 가져간 CPU 시간: 부팅 이후 {since_boot:.2} %, 최근 {seconds:.1}초 동안 {now:.2} %",
                "被虚拟机监控程序占走的 CPU 时间：启动以来 {since_boot:.2} %，最近 {seconds:.1} 秒 {now:.2} %",
            )
        }
        OfQuiet::OthersUsed { cpus, window_ns } => {
            let seconds = seconds(window_ns);
            localized!(
                language,
                "other processes used {cpus:.3} CPUs over {seconds:.1} s",
                "최근 {seconds:.1}초 동안 다른 프로세스가 CPU {cpus:.3}개를 씀",
                "最近 {seconds:.1} 秒内其他进程用了 {cpus:.3} 个 CPU",
            )
        }
        OfQuiet::CrossCoreNow { cpu_a, cpu_b, round_trip_ns } => localized!(
            language,
            "a cache line goes from CPU {cpu_a} to CPU {cpu_b} and back in {round_trip_ns:.0} ns now; trials are \
             compared only at like readings",
            "캐시 라인이 CPU {cpu_a}와 CPU {cpu_b} 사이를 왕복하는 데 지금 {round_trip_ns:.0} ns 걸림. 이 값이 비슷한 시행끼리만 비교함",
            "缓存行在 CPU {cpu_a} 与 CPU {cpu_b} 之间往返目前需 {round_trip_ns:.0} ns；只比较读数相近的试验",
        ),
        OfQuiet::OneCpu => language
            .choose([
                "one CPU only: nothing to read",
                "CPU가 하나뿐이라 측정할 것이 없음",
                "只有一个 CPU：没有可测量的",
            ])
            .to_owned(),
    }
}

pub(super) fn of_rungs(language: Language, finding: OfRungs<'_>) -> String {
    let text = match finding {
        OfRungs::RungBarred { obstacle } => return rung::obstacle(obstacle, language),
        OfRungs::RungGives { rung: Rung::Engine } => [
            "always on, costs nothing, exact for Weir's own servers",
            "항상 켜져 있고 비용이 없으며, Weir 서버에 대해서는 정확함",
            "始终开启，没有开销，对 Weir 自己的服务器是精确的",
        ],
        OfRungs::RungGives { rung: Rung::Process } => [
            "CPU time and waiting time in nanoseconds by thread, switches, memory, machine noise",
            "스레드별 CPU 시간과 대기 시간(나노초), 컨텍스트 스위치, 메모리, 머신 노이즈",
            "各线程的 CPU 时间与等待时间（纳秒）、切换次数、内存、机器噪声",
        ],
        OfRungs::RungGives { rung: Rung::Programs } => [
            "every system call of a process by kind: count, time on a CPU and asleep, who woke whom (weir observe --trace)",
            "프로세스의 모든 시스템 콜을 종류별로 표시: 횟수, CPU에서 쓴 시간과 잠든 시간, 누가 누구를 깨웠는지(weir observe --trace)",
            "按类别给出进程的每个系统调用：次数、在 CPU 上与睡眠的时间、谁唤醒谁（weir observe --trace）",
        ],
        OfRungs::RungGives { rung: Rung::Strace } => [
            "installed: shows what it makes of a program, and is never a measure",
            "설치됨: strace로 본 프로그램의 모습을 보여 주기만 하고, 측정값으로 쓰지 않음",
            "已安装：只用来展示 strace 跟踪下程序的表现，不用作测量值",
        ],
    };
    language.choose(text).to_owned()
}
