/* Lets the N-th call of a class fail, or kills at the N-th change of a directory. Preloaded into a program under test.
 *
 * Failing, counted in this process and in what it forks:
 *   FAULT_CLASS   look open read write sync rename mkdir remove link truncate lock spawn fork exec pipe
 *   FAULT_AT      the number of the call, from 1
 *   FAULT_ERRNO   the error
 *   FAULT_EVER    1: every call from then on, else that one alone
 *   FAULT_BELOW   only calls about files whose path contains this text
 *   FAULT_LOG     a file that gets a line when the fault happened, and with FAULT_PLACES where
 *   FAULT_PLACES  a file of all places that failed before, instead of FAULT_AT: the first call from any other place fails, and is added to it.
 *                 A place is the inner part of a Python stack, with lines, and the kind of file. What a program does with an error is the same
 *                 each time it comes by there, and a run makes many more calls than it has places. Programs that are not Python have none
 *   FAULT_DEPTH   how many calls of the stack make a place, from the innermost on
 *   FAULT_GAP_MS  after so much time another new place may fail in the same process; without it, none
 *   FAULT_PART    `2/12`: only places of the third of twelve parts, into which all are divided by their hash
 * Opens without O_CREAT, O_WRONLY or O_RDWR are of the class `look`.
 *
 * Killing, counted in all programs of one operation together, by the length of a file that each of them adds a byte to; every call that
 * makes, renames or removes a name counts twice, once before and once after it was done:
 *   FAULT_COUNT   the file
 *   FAULT_AT      the number of the point; without it, points are only counted
 *   FAULT_SCOPE   `group` to kill the process group, anything else to kill the program alone
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PLACES 65536

static long *calls = NULL; /* How many there were, and when the last one failed. */
static unsigned long *failed = NULL; /* The places of FAULT_PLACES, found by their hash. */
static void *(*python_thread)(void) = NULL;
static void (*write_stack)(int, void *) = NULL;

__attribute__((constructor)) static void share(void) {
    const char *places = getenv("FAULT_PLACES");
    calls = mmap(NULL, 2 * sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (calls == MAP_FAILED) _exit(126);
    if (!places) return;
    python_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    write_stack = dlsym(RTLD_DEFAULT, "_Py_DumpTraceback");
    long file = syscall(SYS_openat, AT_FDCWD, places, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || syscall(SYS_ftruncate, file, PLACES * sizeof *failed)) _exit(126);
    failed = mmap(NULL, PLACES * sizeof *failed, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (failed == MAP_FAILED) _exit(126);
    syscall(SYS_close, file);
}

static void add(const char *path, const char *text, size_t size) {
    long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) return;
    if (syscall(SYS_write, file, text, size) < 0) _exit(126);
    syscall(SYS_close, file);
}

static void point(void) {
    const char *count = getenv("FAULT_COUNT"), *at = getenv("FAULT_AT"), *scope = getenv("FAULT_SCOPE");
    if (!count) return;
    long file = syscall(SYS_openat, AT_FDCWD, count, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return;
    if (syscall(SYS_write, file, ".", 1) != 1) _exit(126);
    long here = lseek(file, 0, SEEK_CUR);
    syscall(SYS_close, file);
    if (at && here == atol(at)) {
        kill(scope && !strcmp(scope, "group") ? 0 : getpid(), SIGKILL);
        for (;;) pause();
    }
}

/* Whether a call is about a path that the fault is about: one that is given, or that of a descriptor. */
static int concerns(const char *path, int file) {
    const char *below = getenv("FAULT_BELOW");
    if (!below) return 1;
    char link[64], room[PATH_MAX + 1];
    if (path && path[0] == '/') return strstr(path, below) != NULL;
    snprintf(link, sizeof link, file >= 0 ? "/proc/self/fd/%d" : "/proc/self/cwd", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, room, PATH_MAX);
    if (length < 0) return 0;
    room[length] = 0;
    return strstr(room, below) != NULL;
}

/* While this thread has Python write its stack: the text, and the hash of it without the folders of files. */
static __thread struct { int listens, left; unsigned long hash, line; size_t size; char text[16384]; } stack;

static void hear(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (stack.size < sizeof stack.text) stack.text[stack.size++] = text[i];
        if (stack.left < 0 || (text[i] == '\n' && stack.left-- == 0)) continue;
        stack.hash = text[i] == '/' ? stack.line : (stack.hash ^ (unsigned char)text[i]) * 1099511628211UL;
        if (text[i] == '\n') stack.line = stack.hash;
    }
}

/* The place that a call comes from, and 0 where there is no Python. A path counts by what follows the last dot of its name, without numbers. */
static unsigned long place_of(const char *path, int file) {
    if (!python_thread || !write_stack || !python_thread()) return 0;
    char link[64], room[PATH_MAX + 1] = "";
    const char *depth = getenv("FAULT_DEPTH");
    stack.left = depth ? atoi(depth) : INT_MAX;
    stack.hash = stack.line = 14695981039346656037UL;
    stack.size = 0;
    stack.listens = 1;
    write_stack(-1, python_thread());
    if (!path && file >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        if (syscall(SYS_readlinkat, AT_FDCWD, link, room, PATH_MAX) > 0) path = room;
    }
    stack.left = 1;
    const char *kind = path ? strrchr(path, '.') : NULL;
    if (kind && strchr(kind, '/')) kind = NULL;
    for (; kind && *kind; kind++)
        if (*kind < '0' || *kind > '9') hear(kind, 1);
    hear("\n", 1);
    stack.listens = 0;
    return stack.hash | 1;
}

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether this process has had no fault, or the time to get over the last one. */
static int is_rested(void) {
    const char *gap = getenv("FAULT_GAP_MS");
    return !*calls || (gap && now_ms() - calls[1] >= atol(gap));
}

/* Whether a call is the first that comes from its place. */
static int is_new(const char *path, int file) {
    const char *part = getenv("FAULT_PART");
    unsigned long place = place_of(path, file), mine = 0, parts = 1;
    if (!place || (part && sscanf(part, "%lu/%lu", &mine, &parts) == 2 && (place >> 8) % parts != mine)) return 0;
    for (unsigned long at = place % PLACES, tried = 0; tried < PLACES; at = (at + 1) % PLACES, tried++) {
        if (failed[at] == place) return 0;
        if (failed[at] == 0) return __sync_bool_compare_and_swap(&failed[at], 0, place);
    }
    return 0;
}

/* Returns 1 when the call has to fail with errno as set. */
static int fault(const char *class, const char *path, int file) {
    const char *wanted = getenv("FAULT_CLASS"), *at = getenv("FAULT_AT");
    int saved = errno;
    if (!wanted || (!at && !failed) || !calls || stack.listens || strcmp(wanted, class) || !concerns(path, file)) { errno = saved; return 0; }
    const char *ever = getenv("FAULT_EVER"), *code = getenv("FAULT_ERRNO"), *log = getenv("FAULT_LOG");
    int for_ever = ever && *ever == '1', meant = 0;
    if (failed && !(*calls && for_ever) && !(meant = is_rested() && is_new(path, file))) { errno = saved; return 0; }
    if (meant) calls[1] = now_ms();
    long number = __sync_add_and_fetch(calls, 1), first = failed ? number : atol(at);
    errno = saved;
    if (number != first && !(number > first && for_ever)) return 0;
    if ((failed ? meant : number == first) && log) {
        char line[100];
        add(log, line, snprintf(line, sizeof line, "%s %ld %d\n", class, number, (int)getpid()));
        if (failed) add(log, stack.text, stack.size);
    }
    errno = code ? atoi(code) : EIO;
    return 1;
}

#define REAL(name) static typeof(name) *real = NULL; if (!real) real = dlsym(RTLD_NEXT, #name)

static const char *class_of(int flags) { return (flags & O_CREAT) || (flags & O_ACCMODE) != O_RDONLY ? "open" : "look"; }

#define OPENER(name, parameters, at, call)                                                                                    \
    int name parameters {                                                                                                     \
        mode_t mode = 0;                                                                                                      \
        if (flags & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); } \
        REAL(name);                                                                                                           \
        if (fault(class_of(flags), path, at)) return -1;                                                                      \
        if (flags & O_CREAT) point();                                                                                         \
        int done = real call;                                                                                                 \
        if (flags & O_CREAT) point();                                                                                         \
        return done;                                                                                                          \
    }
OPENER(open, (const char *path, int flags, ...), -1, (path, flags, mode))
OPENER(open64, (const char *path, int flags, ...), -1, (path, flags, mode))
OPENER(openat, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
OPENER(openat64, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
DIR *opendir(const char *path) { REAL(opendir); return fault("look", path, -1) ? NULL : real(path); }

#define CALL(result, name, parameters, class, path, file, call)                                                               \
    result name parameters { REAL(name); return fault(class, path, file) ? -1 : real call; }
CALL(ssize_t, read, (int file, void *to, size_t size), "read", NULL, file, (file, to, size))
CALL(ssize_t, pread, (int file, void *to, size_t size, off_t at), "read", NULL, file, (file, to, size, at))
CALL(ssize_t, pread64, (int file, void *to, size_t size, off64_t at), "read", NULL, file, (file, to, size, at))
ssize_t write(int file, const void *from, size_t size) {
    REAL(write);
    if (stack.listens) { hear(from, size); return size; }
    return fault("write", NULL, file) ? -1 : real(file, from, size);
}
CALL(ssize_t, writev, (int file, const struct iovec *from, int count), "write", NULL, file, (file, from, count))
CALL(ssize_t, pwrite, (int file, const void *from, size_t size, off_t at), "write", NULL, file, (file, from, size, at))
CALL(ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), "write", NULL, file, (file, from, size, at))
CALL(int, fsync, (int file), "sync", NULL, file, (file))
CALL(int, fdatasync, (int file), "sync", NULL, file, (file))
CALL(int, ftruncate, (int file, off_t size), "truncate", NULL, file, (file, size))
CALL(int, ftruncate64, (int file, off64_t size), "truncate", NULL, file, (file, size))
CALL(int, flock, (int file, int how), "lock", NULL, file, (file, how))
CALL(int, pipe, (int ends[2]), "pipe", NULL, -1, (ends))
CALL(int, pipe2, (int ends[2], int flags), "pipe", NULL, -1, (ends, flags))
CALL(int, socketpair, (int domain, int type, int protocol, int ends[2]), "pipe", NULL, -1, (domain, type, protocol, ends))
CALL(int, epoll_create1, (int flags), "pipe", NULL, -1, (flags))

#define CHANGE(name, parameters, class, path, at, call)                                                                       \
    int name parameters {                                                                                                     \
        REAL(name);                                                                                                           \
        if (fault(class, path, at)) return -1;                                                                                \
        point();                                                                                                              \
        int done = real call;                                                                                                 \
        point();                                                                                                              \
        return done;                                                                                                          \
    }
CHANGE(rename, (const char *old, const char *new), "rename", new, -1, (old, new))
CHANGE(renameat, (int from, const char *old, int to, const char *new), "rename", new, to, (from, old, to, new))
CHANGE(mkdir, (const char *path, mode_t mode), "mkdir", path, -1, (path, mode))
CHANGE(mkdirat, (int at, const char *path, mode_t mode), "mkdir", path, at, (at, path, mode))
CHANGE(unlink, (const char *path), "remove", path, -1, (path))
CHANGE(unlinkat, (int at, const char *path, int flags), "remove", path, at, (at, path, flags))
CHANGE(rmdir, (const char *path), "remove", path, -1, (path))
CHANGE(link, (const char *old, const char *new), "link", new, -1, (old, new))
CHANGE(symlink, (const char *old, const char *new), "link", new, -1, (old, new))

pid_t fork(void) { REAL(fork); return fault("fork", NULL, -1) ? -1 : real(); }
pid_t vfork(void) { return fork(); } /* A function around the real one could not return twice. */
int execve(const char *path, char *const argv[], char *const env[]) {
    REAL(execve);
    return fault("exec", NULL, -1) ? -1 : real(path, argv, env);
}
int execv(const char *path, char *const argv[]) { REAL(execv); return fault("exec", NULL, -1) ? -1 : real(path, argv); }

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                char *const argv[], char *const env[]) {
    REAL(posix_spawn);
    return fault("spawn", NULL, -1) ? errno : real(pid, path, actions, how, argv, env);
}
