/* Lets the N-th call of a class fail, or kills the process at it. Preloaded into a program under test:
 *
 *   FAULT_CLASS   open write sync rename mkdir remove link truncate lock spawn fork   (comma-separated: any of them counts)
 *   FAULT_AT      the number of the call, from 1
 *   FAULT_ERRNO   the error; 0 kills the process with SIGKILL instead
 *   FAULT_EVER    1: every call from then on, else that one alone
 *   FAULT_BELOW   only calls about paths that contain this text; calls about descriptors count always
 *   FAULT_LOG     a file that gets a line when the fault happened
 *
 * Only calls that change something count: an open without O_CREAT, O_WRONLY or O_RDWR does not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls = 0;

static void note(const char *class) {
    const char *path = getenv("FAULT_LOG");
    static int (*real)(const char *, int, ...) = NULL;
    static ssize_t (*put)(int, const void *, size_t) = NULL;
    if (!path) return;
    if (!real) real = dlsym(RTLD_NEXT, "open");
    if (!put) put = dlsym(RTLD_NEXT, "write");
    int file = real(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    char line[100];
    int size = snprintf(line, sizeof line, "%s %ld %d\n", class, calls, (int)getpid());
    if (put(file, line, size) < 0) { /* nobody to tell */ }
    close(file);
}

/* Returns 1 when the call has to fail with errno as set. */
static int fault(const char *class, const char *path) {
    const char *wanted = getenv("FAULT_CLASS"), *at = getenv("FAULT_AT"), *below = getenv("FAULT_BELOW");
    if (!wanted || !at) return 0;
    size_t length = strlen(class);
    const char *found = wanted;
    while ((found = strstr(found, class))) {
        if ((found == wanted || found[-1] == ',') && (found[length] == 0 || found[length] == ',')) break;
        found += length;
    }
    if (!found || (below && path && !strstr(path, below))) return 0;
    long number = __sync_add_and_fetch(&calls, 1), first = atol(at);
    const char *ever = getenv("FAULT_EVER"), *code = getenv("FAULT_ERRNO");
    if (number != first && !(number > first && ever && *ever == '1')) return 0;
    if (number == first) note(class);
    if (!code || atoi(code) == 0) { kill(getpid(), SIGKILL); pause(); }
    errno = atoi(code);
    return 1;
}

#define REAL(name) static typeof(name) *real = NULL; if (!real) real = dlsym(RTLD_NEXT, #name)

static int changes(int flags) { return (flags & O_CREAT) || (flags & O_ACCMODE) != O_RDONLY; }

#define OPENER(name, parameters, path, call)                                   \
    int name parameters {                                                      \
        mode_t mode = 0;                                                       \
        if (flags & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); } \
        REAL(name);                                                            \
        return changes(flags) && fault("open", path) ? -1 : real call;         \
    }
OPENER(open, (const char *path, int flags, ...), path, (path, flags, mode))
OPENER(open64, (const char *path, int flags, ...), path, (path, flags, mode))
OPENER(openat, (int at, const char *path, int flags, ...), path, (at, path, flags, mode))
OPENER(openat64, (int at, const char *path, int flags, ...), path, (at, path, flags, mode))

#define CALL(result, name, parameters, class, path, call)                      \
    result name parameters { REAL(name); return fault(class, path) ? -1 : real call; }
CALL(ssize_t, write, (int file, const void *from, size_t size), "write", NULL, (file, from, size))
CALL(ssize_t, writev, (int file, const struct iovec *from, int count), "write", NULL, (file, from, count))
CALL(ssize_t, pwrite, (int file, const void *from, size_t size, off_t at), "write", NULL, (file, from, size, at))
CALL(ssize_t, pwrite64, (int file, const void *from, size_t size, off64_t at), "write", NULL, (file, from, size, at))
CALL(int, fsync, (int file), "sync", NULL, (file))
CALL(int, fdatasync, (int file), "sync", NULL, (file))
CALL(int, rename, (const char *old, const char *new), "rename", new, (old, new))
CALL(int, renameat, (int from, const char *old, int to, const char *new), "rename", new, (from, old, to, new))
CALL(int, mkdir, (const char *path, mode_t mode), "mkdir", path, (path, mode))
CALL(int, mkdirat, (int at, const char *path, mode_t mode), "mkdir", path, (at, path, mode))
CALL(int, unlink, (const char *path), "remove", path, (path))
CALL(int, unlinkat, (int at, const char *path, int flags), "remove", path, (at, path, flags))
CALL(int, rmdir, (const char *path), "remove", path, (path))
CALL(int, link, (const char *old, const char *new), "link", new, (old, new))
CALL(int, symlink, (const char *old, const char *new), "link", new, (old, new))
CALL(int, ftruncate, (int file, off_t size), "truncate", NULL, (file, size))
CALL(int, ftruncate64, (int file, off64_t size), "truncate", NULL, (file, size))
CALL(int, flock, (int file, int how), "lock", NULL, (file, how))

CALL(pid_t, fork, (void), "fork", NULL, ())

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                char *const argv[], char *const env[]) {
    REAL(posix_spawn);
    return fault("spawn", NULL) ? errno : real(pid, path, actions, how, argv, env);
}
