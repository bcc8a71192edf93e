/* Tries every way out of a cell that a native program has, and every way that it was granted.
 *
 * One line per attempt: its name, `did` or `refused`, and the error's number. Whatever succeeds where it should not
 * is harmless: it lands in the test's own folders, listeners and process. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void say(const char *name, int did) {
    int number = errno;
    if (did) printf("%s did 0\n", name);
    else printf("%s refused %d\n", name, number);
    fflush(stdout);
    errno = 0;
}

static const char *env(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static long number(const char *name) { return strtol(env(name), NULL, 10); }

static char *in(const char *folder, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0) abort();
    return path;
}

static int reads(const char *path) {
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) return 0;
    int did = read(fd, &byte, 1) >= 0, kept = errno;
    if (!did && errno == EISDIR) {
        /* A folder is read when it names something besides itself and the one above. */
        DIR *folder = fdopendir(fd);
        errno = 0;
        for (int at = 0; folder && at < 3; at++) did = readdir(folder) != NULL;
        kept = errno ? errno : ENOENT;
        closedir(folder);
    } else {
        close(fd);
    }
    errno = kept;
    return did;
}

static int writes(const char *path, int flags) {
    int fd = open(path, O_WRONLY | flags, 0644);
    if (fd < 0) return 0;
    int did = write(fd, "escaped\n", 8) == 8;
    close(fd);
    return did;
}

static int makes(const char *path) { return writes(path, O_CREAT | O_EXCL); }

/* Runs a part in a process of its own: it may be killed for what it tries. */
static int alone(int (*part)(void)) {
    int told[2], status = 0, answer[2] = {0, 0};
    if (pipe(told)) return 0;
    pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) {
        errno = 0;
        answer[0] = part();
        answer[1] = errno;
        if (write(told[1], answer, sizeof answer) < 0) _exit(1);
        _exit(0);
    }
    close(told[1]);
    ssize_t got = read(told[0], answer, sizeof answer);
    close(told[0]);
    waitpid(child, &status, 0);
    if (got != sizeof answer) {
        errno = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : EIO;
        return 0;
    }
    errno = answer[1];
    return answer[0];
}

static int runs(const char *program) {
    pid_t child = fork();
    if (child < 0) return 0;
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        if (null >= 0) dup2(null, 1);
        execl(program, program, (char *)NULL);
        _exit(errno);
    }
    int status = 0;
    waitpid(child, &status, 0);
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return errno == 0;
}

static void files(const char *project, const char *outside, const char *tmp) {
    const char *key = env("E_KEY");
    say("read_project", reads(in(project, "src/a.txt")));
    say("read_system", reads("/etc/passwd"));
    say("read_proc_self", reads("/proc/self/status"));
    say("exec_system", runs("/usr/bin/true"));
    say("exec_own", runs(in(project, "own.sh")));
    say("write_null", writes("/dev/null", 0));
    say("write_tmp", makes(in(tmp, "c-new")));
    say("chmod_tmp", chmod(in(tmp, "c-new"), 0600) == 0);
    say("write_old", writes(in(project, "README"), 0));
    say("write_top", makes(in(project, "c-new")));
    say("write_sub", makes(in(project, "src/c-new")));
    say("mkdir_sub", mkdir(in(project, "src/c-folder"), 0755) == 0);
    say("rename_sub", rename(in(project, "src/c-folder"), in(project, "src/c-moved")) == 0);
    say("chmod_sub", chmod(in(project, "src/b.txt"), 0600) == 0);
    int opened = open(in(project, "src/b.txt"), O_WRONLY);
    say("fchmod_sub", opened >= 0 && fchmod(opened, 0644) == 0);
    if (opened >= 0) close(opened);

    say("read_key", reads(key));
    say("list_keys", reads(env("E_KEYS")));
    say("stat_read_lodestar", reads(in(project, ".lodestar/state.db")));
    say("write_lodestar", makes(in(project, ".lodestar/c-new")));
    say("append_lodestar", writes(in(project, ".lodestar/state.db"), O_APPEND));
    say("read_outside", reads(in(outside, "secret")));
    say("write_outside", makes(in(outside, "c-new")));
    say("append_outside", writes(in(outside, "secret"), O_APPEND));
    say("truncate_outside", truncate(in(outside, "secret"), 3) == 0);
    say("remove_outside", unlink(in(outside, "c-prey")) == 0);
    say("chmod_outside", chmod(in(outside, "secret"), 0666) == 0);
    say("chmod_key", chmod(key, 0644) == 0);
    say("utime_outside", utimes(in(outside, "secret"), NULL) == 0);
    say("xattr_outside", setxattr(in(outside, "secret"), "user.escaped", "1", 1, 0) == 0);
    say("read_client", reads(in(project, ".mcp.json")));
    say("write_client", writes(in(project, ".mcp.json"), O_TRUNC));
    say("replace_client", rename(in(project, "src/b.txt"), in(project, ".mcp.json")) == 0);
    say("read_credentials", reads(in(env("HOME"), ".config/git/credentials")));
    say("read_home_secret", reads(in(env("HOME"), ".ssh/id")));
    say("write_home", makes(in(env("HOME"), "c-new")));

    char *link = in(tmp, "c-link");
    if (symlink(key, link)) abort();
    say("read_key_by_symlink", reads(link));
    unlink(link);
    if (symlink(in(outside, "secret"), link)) abort();
    say("write_outside_by_symlink", writes(link, O_APPEND));
    unlink(link);
    link = in(tmp, "c-hard");
    say("read_key_by_hard_link", linkat(AT_FDCWD, key, AT_FDCWD, link, 0) == 0 && reads(link));
    say("write_hook_by_hard_link",
        linkat(AT_FDCWD, in(project, ".git/hooks/pre-commit"), AT_FDCWD, link, 0) == 0 && writes(link, O_APPEND));
    say("write_hook_by_hard_link_beside",
        linkat(AT_FDCWD, in(project, ".git/hooks/pre-commit"), AT_FDCWD, in(project, "src/c-hard"), 0) == 0 &&
            writes(in(project, "src/c-hard"), O_APPEND));
    say("write_hook", writes(in(project, ".git/hooks/pre-commit"), O_APPEND));
    say("make_hook", makes(in(project, ".git/hooks/post-commit")));
    say("write_git_config", writes(in(project, ".git/config"), O_APPEND));
    say("move_git", rename(in(project, ".git"), in(project, "src/c-git")) == 0);
    say("move_hooks", rename(in(project, ".git/hooks"), in(project, "src/c-hooks")) == 0);
    say("move_claude", rename(in(project, ".claude"), in(project, "src/c-claude")) == 0);
    say("exchange_claude",
        mkdir(in(tmp, "c-folder"), 0755) == 0 &&
            syscall(SYS_renameat2, AT_FDCWD, in(project, ".claude"), AT_FDCWD, in(project, "src"), 2) == 0);
    say("write_settings", writes(in(project, ".claude/settings.json"), O_APPEND));
    say("self_root_key", reads(in("/proc/self/root", key)));
    say("self_cwd_lodestar", reads("/proc/self/cwd/.lodestar/state.db"));
}

static void parent_by_proc(pid_t parent) {
    static const char *const parts[] = {"root/etc/passwd", "cwd/Cargo.toml", "environ", "mem", "maps", "auxv"};
    for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
        char name[64], path[64];
        snprintf(name, sizeof name, "parent_%.*s", (int)strcspn(parts[at], "/"), parts[at]);
        snprintf(path, sizeof path, "/proc/%d/%s", parent, parts[at]);
        if (!strcmp(parts[at], "mem")) {
            int fd = open(path, O_RDWR);
            char bytes[8];
            say(name, fd >= 0 && pread(fd, bytes, 8, (off_t)strtoull(env("E_ADDRESS"), NULL, 10)) == 8);
            if (fd >= 0) close(fd);
        } else {
            say(name, reads(path));
        }
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%ld", parent, number("E_FD"));
    say("parent_open_fd", reads(path));
    char target[256];
    say("parent_fd", readlink(path, target, sizeof target) > 0);
    snprintf(path, sizeof path, "/proc/%d/fd", parent);
    say("parent_fd_numbers", reads(path));
    snprintf(path, sizeof path, "/proc/%d/oom_score_adj", parent);
    int fd = open(path, O_WRONLY);
    say("parent_oom", fd >= 0 && write(fd, "0", 1) == 1);
    if (fd >= 0) close(fd);
}

static void parent_by_calls(pid_t parent) {
    char bytes[8];
    struct iovec here = {bytes, 8}, there = {(void *)strtoull(env("E_ADDRESS"), NULL, 10), 8};
    say("ptrace", ptrace(PTRACE_SEIZE, parent, 0, 0) == 0);
    say("vm_read", process_vm_readv(parent, &here, 1, &there, 1, 0) == 8);
    memcpy(bytes, "LODESTAR", 8);
    say("vm_write", process_vm_writev(parent, &here, 1, &there, 1, 0) == 8);
    int pidfd = (int)syscall(SYS_pidfd_open, parent, 0);
    int taken = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number("E_FD"), 0);
    say("pidfd_getfd", taken >= 0);
    if (taken >= 0) close(taken);
    say("pidfd_signal", syscall(SYS_pidfd_send_signal, pidfd, SIGURG, NULL, 0) == 0);
    say("signal", kill(parent, SIGURG) == 0);
    say("signal_nothing", kill(parent, 0) == 0);
    say("signal_thread", syscall(SYS_tgkill, parent, parent, SIGURG) == 0);
    union sigval value = {0};
    say("signal_queue", sigqueue(parent, SIGURG, value) == 0);
    say("kcmp", syscall(SYS_kcmp, parent, getpid(), 0, 0, 0) >= 0);
    struct rlimit limit;
    say("limits_read", prlimit(parent, RLIMIT_CPU, NULL, &limit) == 0);
    limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
    say("limits_set", prlimit(parent, RLIMIT_CPU, &limit, NULL) == 0);
    errno = 0;
    say("setns", syscall(SYS_setns, pidfd, CLONE_NEWNS) == 0);
    say("own_limits", getrlimit(RLIMIT_NOFILE, &limit) == 0);
    /* A child of this one's parent: nobody here would wait for it. */
    pid_t sibling = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (sibling == 0) _exit(0);
    say("clone_parent", sibling > 0);
}

static int mounts_bind(void) {
    char *tmp = in(env("TMPDIR"), "c-mount");
    mkdir(tmp, 0755);
    int did = mount(env("E_OUTSIDE"), tmp, NULL, MS_BIND, NULL) == 0;
    if (did) umount2(tmp, MNT_DETACH);
    return did;
}
static int mounts_tmpfs(void) {
    char *tmp = in(env("TMPDIR"), "c-mount");
    mkdir(tmp, 0755);
    int did = mount("tmpfs", tmp, "tmpfs", 0, NULL) == 0;
    if (did) umount2(tmp, MNT_DETACH);
    return did;
}
static int uncovers(void) {
    if (umount2(in(env("E_PROJECT"), ".lodestar"), MNT_DETACH)) return 0;
    return 1;
}
static int unshares_user(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0; }
static int unshares_mount(void) { return unshare(CLONE_NEWNS) == 0; }
static int unshares_net(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }
static int changes_root(void) { return chroot(env("E_OUTSIDE")) == 0; }
static int opens_tree(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* clone */) >= 0; }
static int opens_fs(void) { return syscall(SYS_fsopen, "tmpfs", 0) >= 0; }
static int sets_attributes(void) {
    unsigned long attributes[4] = {0, 1, 0, 0}; /* no longer read only */
    return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0x8000, attributes, sizeof attributes) == 0;
}
static int clones_user(void) {
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    return child > 0;
}
static int clones3_user(void) {
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, NULL, 0);
    return child > 0;
}
static int uses_uring(void) {
    char parameters[256] = {0};
    return syscall(SYS_io_uring_setup, 1, parameters) >= 0;
}
static int uses_keyring(void) { return syscall(SYS_keyctl, 0, -3, 0) >= 0; }
static int adds_key(void) { return syscall(SYS_add_key, "user", "escaped", "1", 1, -2) >= 0; }
static int loads_bpf(void) {
    unsigned attributes[16] = {2 /* array */, 4, 4, 1};
    return syscall(SYS_bpf, 0, attributes, sizeof attributes) >= 0;
}
static int opens_perf(void) {
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes};
    attributes.config = PERF_COUNT_SW_DUMMY;
    attributes.exclude_kernel = 1;
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) >= 0;
}
static int handles_faults(void) { return syscall(SYS_userfaultfd, 1 /* user mode only */) >= 0; }
static int opens_by_handle(void) {
    union { struct file_handle handle; char room[256]; } at = {0};
    at.handle.handle_bytes = 128;
    int mount;
    if (name_to_handle_at(AT_FDCWD, in(env("E_OUTSIDE"), "secret"), &at.handle, &mount, 0)) return 0;
    int below = open(env("TMPDIR"), O_RDONLY | O_DIRECTORY);
    int fd = open_by_handle_at(below, &at.handle, O_RDONLY);
    return fd >= 0;
}
static int watches_all(void) { return syscall(SYS_fanotify_init, 0x200 /* names */, 0) >= 0; }
static int other_numbers(void) {
    char parameters[256] = {0};
    /* The x32 numbers of io_uring_setup, ptrace, process_vm_readv, and setns. */
    if (syscall(0x40000000L | 425, 1, parameters) >= 0) return 1;
    if (syscall(0x40000000L | 521, PTRACE_TRACEME, 0, 0, 0) >= 0) return 1;
    if (syscall(0x40000000L | 539, getpid(), 0, 0, 0, 0, 0) >= 0) return 1;
    return syscall(0x40000000L | 39) >= 0; /* getpid: nothing of it at all */
}
static int old_gate(void) {
#ifdef __x86_64__
    long result;
    /* `getpid` by the numbers of 32-bit programs. */
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return result > 0;
#else
    errno = ENOSYS;
    return 0;
#endif
}
static int types_for_user(void) {
    int terminal = open("/dev/tty", O_RDWR);
    if (terminal < 0) terminal = 0;
    char letter = 'x';
    return ioctl(terminal, TIOCSTI, &letter) == 0;
}
static int leaves_session(void) { return setsid() >= 0; }
static int leaves_group(void) { return setpgid(0, 0) == 0; }
static int sees_memory(void) {
    void *at = shmat((int)number("E_SHM"), NULL, 0);
    if (at == (void *)-1) return 0;
    return !memcmp(at, "shared", 6);
}
static int becomes_other(void) {
    int told[2];
    if (pipe(told)) return 0;
    pid_t child = fork();
    if (child == 0) {
        dup2(told[1], 1);
        execl(env("E_SUID"), "id", "-u", (char *)NULL);
        _exit(1);
    }
    close(told[1]);
    char text[32] = {0};
    ssize_t got = read(told[0], text, sizeof text - 1);
    waitpid(child, NULL, 0);
    errno = EPERM;
    return got > 0 && strtol(text, NULL, 10) != (long)geteuid();
}
static int drops_to_root(void) { return setuid(0) == 0 && geteuid() == 0 && chown(in(env("TMPDIR"), "c-new"), 1, 1) == 0; }

static int stream_to(int family, int protocol, long port, int how) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((unsigned short)port)};
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    six.sin6_addr = in6addr_loopback;
    void *address = family == AF_INET ? (void *)&four : (void *)&six;
    socklen_t size = family == AF_INET ? sizeof four : sizeof six;
    int fd = socket(family, how, protocol);
    if (fd < 0) return 0;
    int did;
    if (how == SOCK_DGRAM) {
        did = sendto(fd, "escaped", 7, 0, address, size) == 7;
    } else if (protocol == -1) {
        did = 0;
    } else {
        did = connect(fd, address, size) == 0;
    }
    int kept = errno;
    close(fd);
    errno = kept;
    return did;
}

static int fast_open(long port) {
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) return 0;
    int did = sendto(fd, "escaped", 7, MSG_FASTOPEN, (void *)&four, sizeof four) == 7;
    int kept = errno;
    close(fd);
    errno = kept;
    return did;
}

static socklen_t unix_address(struct sockaddr_un *address, const char *name) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    size_t length = strlen(name);
    memcpy(address->sun_path, name, length);
    if (name[0] == '@') address->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@'));
}

static int unix_stream(const char *name) {
    struct sockaddr_un address;
    socklen_t size = unix_address(&address, name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return 0;
    int did = connect(fd, (void *)&address, size) == 0;
    int kept = errno;
    close(fd);
    errno = kept;
    return did;
}

/* A pair is made and one end of it sends elsewhere. */
static int unix_pair(int how, const char *name) {
    struct sockaddr_un address;
    socklen_t size = unix_address(&address, name);
    int pair[2];
    if (socketpair(AF_UNIX, how, 0, pair)) return 0;
    int did = sendto(pair[0], "escaped", 7, 0, (void *)&address, size) == 7;
    int kept = errno;
    close(pair[0]);
    close(pair[1]);
    errno = kept;
    return did;
}

static void sockets(void) {
    long tcp4 = number("E_TCP4"), tcp6 = number("E_TCP6"), udp4 = number("E_UDP4"), udp6 = number("E_UDP6");
    say("tcp4", stream_to(AF_INET, 0, tcp4, SOCK_STREAM));
    say("tcp6", stream_to(AF_INET6, 0, tcp6, SOCK_STREAM));
    say("tcp_port", stream_to(AF_INET, 0, number("E_TCP_PORT"), SOCK_STREAM));
    say("mptcp", stream_to(AF_INET, 262, tcp4, SOCK_STREAM));
    say("tcp_fast_open", fast_open(tcp4));
    say("udp4", stream_to(AF_INET, 0, udp4, SOCK_DGRAM));
    say("udp6", stream_to(AF_INET6, 0, udp6, SOCK_DGRAM));
    say("raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0);
    say("raw6", socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6) >= 0);
    say("packet", socket(AF_PACKET, SOCK_DGRAM, 0) >= 0);
    say("vsock", socket(AF_VSOCK, SOCK_STREAM, 0) >= 0);
    say("crypto", socket(AF_ALG, SOCK_SEQPACKET, 0) >= 0);
    say("netlink_diag", socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG) >= 0);
    say("netlink_events", socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT) >= 0);
    say("netlink_route", socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) >= 0);
    say("unix_stream", unix_stream(env("E_STREAM")));
    say("unix_abstract", unix_stream(env("E_ABSTRACT")));
    say("unix_pair_datagram", unix_pair(SOCK_DGRAM, env("E_DATAGRAM")));
    say("unix_pair_raw", unix_pair(SOCK_RAW, env("E_DATAGRAM")));
    say("unix_pair_abstract", unix_pair(SOCK_DGRAM, env("E_ABSTRACT_DATAGRAM")));
}

static void *in_thread(void *at) { *(int *)at = 1; return NULL; }

static int loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), other;
    if (listener < 0 || bind(listener, (void *)&address, size) || listen(listener, 1)) return 0;
    getsockname(listener, (void *)&address, &size);
    other = socket(AF_INET, SOCK_STREAM, 0);
    return connect(other, (void *)&address, size) == 0;
}

static int shares_memory(void) {
    int fd = shm_open("/c-escape", O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0) return 0;
    shm_unlink("/c-escape");
    return 1;
}

static void granted(void) {
    int pair[2], seen = 0;
    pthread_t thread;
    say("pipe", pipe(pair) == 0);
    say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "x", 1) == 1);
    say("thread", pthread_create(&thread, NULL, in_thread, &seen) == 0 && pthread_join(thread, NULL) == 0 && seen);
    pid_t child = fork();
    if (child == 0) { pause(); _exit(0); }
    say("kill_own_child", child > 0 && kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    say("loopback", alone(loopback));
    say("shared_memory", shares_memory());
    say("memfd", memfd_create("c", 0) >= 0);
}

/* Forks until it is stopped, or until far more have been made than any child needs. */
static void bomb(long most) {
    long made = 0;
    int number = 0;
    pid_t *children = calloc((size_t)most, sizeof *children);
    while (made < most) {
        pid_t child = fork();
        if (child < 0) { number = errno; break; }
        if (child == 0) { pause(); _exit(0); }
        children[made++] = child;
    }
    for (long at = 0; at < made; at++) kill(children[at], SIGKILL);
    for (long at = 0; at < made; at++) waitpid(children[at], NULL, 0);
    errno = number;
    say("fork_bomb", made == most);
}

/* Makes a piece of memory for every program, or takes one away. */
static int memory(const char *what) {
    if (strcmp(what, "make")) return shmctl((int)strtol(what, NULL, 10), IPC_RMID, NULL);
    int id = shmget(IPC_PRIVATE, 16, IPC_CREAT | 0600);
    void *at = shmat(id, NULL, 0);
    if (at == (void *)-1) return 1;
    memcpy(at, "shared", 6);
    printf("%d\n", id);
    return 0;
}

int main(void) {
    if (*env("E_MEMORY")) return memory(env("E_MEMORY"));
    const char *project = env("E_PROJECT"), *tmp = env("TMPDIR");
    pid_t parent = (pid_t)number("E_PARENT");
    if (number("E_BOMB")) { bomb(number("E_BOMB")); return 0; }
    say("inherited_descriptor", fcntl((int)number("E_FD"), F_GETFD) >= 0);
    files(project, env("E_OUTSIDE"), tmp);
    parent_by_proc(parent);
    parent_by_calls(parent);
    sockets();
    granted();
    say("mount_bind", alone(mounts_bind));
    say("mount_tmpfs", alone(mounts_tmpfs));
    say("mount_attributes", alone(sets_attributes));
    say("unmount_cover", alone(uncovers));
    say("unshare_user", alone(unshares_user));
    say("unshare_mount", alone(unshares_mount));
    say("unshare_network", alone(unshares_net));
    say("clone_user", alone(clones_user));
    say("clone3_user", alone(clones3_user));
    say("chroot", alone(changes_root));
    say("open_tree", alone(opens_tree));
    say("fsopen", alone(opens_fs));
    say("io_uring", alone(uses_uring));
    say("keyctl", alone(uses_keyring));
    say("add_key", alone(adds_key));
    say("bpf", alone(loads_bpf));
    say("perf", alone(opens_perf));
    say("userfaultfd", alone(handles_faults));
    say("open_by_handle", alone(opens_by_handle));
    say("fanotify", alone(watches_all));
    say("x32_numbers", alone(other_numbers));
    say("int80", alone(old_gate));
    say("tiocsti", alone(types_for_user));
    say("setsid", alone(leaves_session));
    say("setpgid", alone(leaves_group));
    say("sysv_memory", alone(sees_memory));
    say("setuid_program", alone(becomes_other));
    say("setuid_root", alone(drops_to_root));
    /* Last, since they change what the others look at: protected places that were not there. */
    mkdir(in(project, ".codex"), 0755);
    say("plant_codex", makes(in(project, ".codex/config.toml")));
    say("plant_vscode", makes(in(project, ".vscode/mcp.json")));
    say("plant_commondir", makes(in(project, ".git/commondir")));
    say("plant_by_link", symlink(env("HOME"), in(project, ".gemini")) == 0);
    return 0;
}
