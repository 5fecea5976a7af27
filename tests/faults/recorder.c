/* Writes down every change that a program and all that it starts make to files, in order, so that a disk can be rebuilt as a power cut
 * would have left it. Preloaded into the orchestrator; it brings itself into whatever that starts.
 *
 *   RECORD_LOG    the log: one record for each change
 *   RECORD_KEEP   a folder with a link to every file that was made, named after its inode: so none is ever used again
 *   RECORD_BOOT   a file that is read in place of the boot's identity: the machine that was started again
 *
 * A record: kind (1 byte), inode (8), a number (8), time of the last change of the content in ns (8), length of the path (4), length of the
 * data (4), path, data.
 *   O opened (number: 1 made, 2 emptied)   W written at an offset   T cut or grown to a size   S synced
 *   R renamed (data: the new path)   L linked (data: the new path)   Y symlink (data: its target)   U removed   M folder made
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) static typeof(name) *real = NULL; if (!real) real = dlsym(RTLD_NEXT, #name)
#define BOOT "/proc/sys/kernel/random/boot_id"

#define KEPT 4
static char kept[KEPT][PATH_MAX + 32];
static const char *names[KEPT] = {"LD_PRELOAD", "RECORD_LOG", "RECORD_BOOT", "RECORD_KEEP"};

__attribute__((constructor)) static void keep(void) {
    for (int i = 0; i < KEPT; i++) {
        const char *value = getenv(names[i]);
        if (value) snprintf(kept[i], sizeof kept[i], "%s=%s", names[i], value);
    }
}

static void record(char kind, const struct stat *about, int64_t number, const char *path, const void *data, uint32_t size) {
    if (!kept[1][0]) return;
    int saved = errno;
    uint64_t inode = about ? about->st_ino : 0;
    int64_t time = about ? about->st_mtim.tv_sec * 1000000000LL + about->st_mtim.tv_nsec : 0;
    uint32_t length = path ? strlen(path) : 0;
    char head[33];
    head[0] = kind;
    memcpy(head + 1, &inode, 8); memcpy(head + 9, &number, 8); memcpy(head + 17, &time, 8);
    memcpy(head + 25, &length, 4); memcpy(head + 29, &size, 4);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)path, length}, {(void *)data, size}};
    long file = syscall(SYS_openat, AT_FDCWD, kept[1] + strlen("RECORD_LOG="), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (syscall(SYS_writev, file, parts, 3) < 0) _exit(126);
        syscall(SYS_close, file);
    }
    errno = saved;
}

/* The absolute path of a name, without following links. */
static const char *whole(int at, const char *path, char *room) {
    if (path[0] == '/') return path;
    ssize_t length;
    if (at == AT_FDCWD) {
        if (!getcwd(room, PATH_MAX)) return path;
        length = strlen(room);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        length = readlink(link, room, PATH_MAX - 1);
        if (length < 0) return path;
    }
    snprintf(room + length, PATH_MAX * 2 - length, "/%s", path);
    return room;
}

static int plain(int file, struct stat *about) { return !fstat(file, about) && S_ISREG(about->st_mode); }

static int opened(int file, int flags, int there, int at, const char *path) {
    struct stat about;
    if (file < 0 || !(flags & (O_CREAT | O_TRUNC)) || (flags & __O_TMPFILE) == __O_TMPFILE || !plain(file, &about)) return file;
    char room[PATH_MAX * 2];
    int number = (!there ? 1 : 0) | ((flags & O_TRUNC) ? 2 : 0);
    if (!there && kept[3][0]) {
        char from[64], to[PATH_MAX * 2];
        int saved = errno;
        snprintf(from, sizeof from, "/proc/self/fd/%d", file);
        snprintf(to, sizeof to, "%s/%lu", kept[3] + strlen("RECORD_KEEP="), (unsigned long)about.st_ino);
        syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW);
        errno = saved;
    }
    if (number) record('O', &about, number, whole(at, path, room), NULL, 0);
    return file;
}

static const char *instead(const char *path) { return kept[2][0] && !strcmp(path, BOOT) ? kept[2] + strlen("RECORD_BOOT=") : path; }
static int exists(int at, const char *path) { return !syscall(SYS_faccessat, at, path, F_OK); }

#define OPENER(name, parameters, at, call)                                                              \
    int name parameters {                                                                               \
        mode_t mode = 0;                                                                                \
        if (flags & (O_CREAT | __O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, int); va_end(rest); } \
        REAL(name);                                                                                     \
        path = instead(path);                                                                           \
        int there = (flags & O_CREAT) ? exists(at, path) : 1;                                           \
        return opened(real call, flags, there, at, path);                                               \
    }
OPENER(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPENER(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPENER(openat, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
OPENER(openat64, (int at, const char *path, int flags, ...), at, (at, path, flags, mode))
int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

static void written(int file, off_t at, const void *data, ssize_t size) {
    struct stat about;
    if (size > 0 && plain(file, &about)) record('W', &about, at >= 0 ? at : lseek(file, 0, SEEK_CUR) - size, NULL, data, size);
}

ssize_t write(int file, const void *data, size_t size) {
    REAL(write);
    ssize_t done = real(file, data, size);
    written(file, -1, data, done);
    return done;
}
ssize_t writev(int file, const struct iovec *parts, int count) {
    ssize_t all = 0;
    for (int i = 0; i < count; i++) {
        ssize_t done = write(file, parts[i].iov_base, parts[i].iov_len);
        if (done < 0) return all ? all : -1;
        all += done;
        if ((size_t)done < parts[i].iov_len) break;
    }
    return all;
}
#define PLACED(name, type)                                                     \
    ssize_t name(int file, const void *data, size_t size, type at) {           \
        REAL(name);                                                            \
        ssize_t done = real(file, data, size, at);                             \
        written(file, at, data, done);                                         \
        return done;                                                           \
    }
PLACED(pwrite, off_t)
PLACED(pwrite64, off64_t)
/* Streams are written inside the C library: what they made of the file is read when they are flushed. */
static void streamed(FILE *stream) {
    static int (*flush)(FILE *) = NULL;
    struct stat about;
    int file = stream ? fileno(stream) : -1, how = file >= 0 ? fcntl(file, F_GETFL) : -1;
    if (how < 0 || (how & O_ACCMODE) == O_RDONLY || !plain(file, &about) || about.st_size > (1 << 20)) return;
    if (!flush) flush = dlsym(RTLD_NEXT, "fflush");
    flush(stream);
    char from[64];
    static __thread char room[1 << 20];
    snprintf(from, sizeof from, "/proc/self/fd/%d", file);
    long again = syscall(SYS_openat, AT_FDCWD, from, O_RDONLY | O_CLOEXEC);
    if (again < 0) return;
    long size = syscall(SYS_read, again, room, sizeof room);
    syscall(SYS_close, again);
    fstat(file, &about);
    if (size >= 0) {
        record('T', &about, 0, NULL, NULL, 0);
        record('W', &about, 0, NULL, room, size);
    }
}
int fclose(FILE *stream) { REAL(fclose); streamed(stream); return real(stream); }
int fflush(FILE *stream) { REAL(fflush); streamed(stream); return real(stream); }

/* Copies inside the kernel would pass by unseen: whoever tries one falls back to reading and writing. */
ssize_t copy_file_range(int a, off64_t *b, int c, off64_t *d, size_t size, unsigned how) { errno = EXDEV; return -1; }
ssize_t sendfile(int out, int in, off_t *at, size_t size) { errno = EINVAL; return -1; }
ssize_t sendfile64(int out, int in, off64_t *at, size_t size) { errno = EINVAL; return -1; }

#define SIZED(name, type)                                                      \
    int name(int file, type size) {                                            \
        REAL(name);                                                            \
        struct stat about;                                                     \
        int done = real(file, size);                                           \
        if (!done && plain(file, &about)) record('T', &about, size, NULL, NULL, 0); \
        return done;                                                           \
    }
SIZED(ftruncate, off_t)
SIZED(ftruncate64, off64_t)
static int grown(int file, int done) {
    struct stat about;
    if (!done && plain(file, &about)) record('T', &about, about.st_size, NULL, NULL, 0);
    return done;
}
int fallocate(int file, int how, off_t at, off_t size) { REAL(fallocate); return grown(file, real(file, how, at, size)); }
int fallocate64(int file, int how, off64_t at, off64_t size) { REAL(fallocate64); return grown(file, real(file, how, at, size)); }
int posix_fallocate(int file, off_t at, off_t size) { REAL(posix_fallocate); return grown(file, real(file, at, size)); }
int posix_fallocate64(int file, off64_t at, off64_t size) { REAL(posix_fallocate64); return grown(file, real(file, at, size)); }

static int synced(int file, int done) {
    struct stat about;
    if (!done && !fstat(file, &about)) record('S', &about, 0, NULL, NULL, 0);
    return done;
}
int fsync(int file) { REAL(fsync); return synced(file, real(file)); }
int fdatasync(int file) { REAL(fdatasync); return synced(file, real(file)); }

static int named(char kind, int done, int at, const char *path, int to, const char *other) {
    char room[PATH_MAX * 2], rest[PATH_MAX * 2];
    if (done) return done;
    const char *data = !other ? NULL : kind == 'Y' ? other : whole(to, other, rest);
    record(kind, NULL, 0, whole(at, path, room), data, data ? strlen(data) : 0);
    return done;
}
int rename(const char *a, const char *b) { REAL(rename); return named('R', real(a, b), AT_FDCWD, a, AT_FDCWD, b); }
int renameat(int x, const char *a, int y, const char *b) { REAL(renameat); return named('R', real(x, a, y, b), x, a, y, b); }
int link(const char *a, const char *b) { REAL(link); return named('L', real(a, b), AT_FDCWD, a, AT_FDCWD, b); }
int linkat(int x, const char *a, int y, const char *b, int f) { REAL(linkat); return named('L', real(x, a, y, b, f), x, a, y, b); }
int symlink(const char *to, const char *path) { REAL(symlink); return named('Y', real(to, path), AT_FDCWD, path, 0, to); }
int symlinkat(const char *to, int at, const char *path) { REAL(symlinkat); return named('Y', real(to, at, path), at, path, 0, to); }
int unlink(const char *path) { REAL(unlink); return named('U', real(path), AT_FDCWD, path, 0, NULL); }
int unlinkat(int at, const char *path, int how) { REAL(unlinkat); return named('U', real(at, path, how), at, path, 0, NULL); }
int rmdir(const char *path) { REAL(rmdir); return named('U', real(path), AT_FDCWD, path, 0, NULL); }
int mkdir(const char *path, mode_t mode) { REAL(mkdir); return named('M', real(path, mode), AT_FDCWD, path, 0, NULL); }
int mkdirat(int at, const char *path, mode_t mode) { REAL(mkdirat); return named('M', real(at, path, mode), at, path, 0, NULL); }

/* The environment of a program that is started, with what is needed to write down its changes, too. */
static char **with(char *const given[]) {
    static __thread char *made[4096];
    int count = 0;
    for (; given && given[count] && count < 4000; count++) made[count] = given[count];
    for (int i = 0; i < KEPT; i++) {
        size_t length = strlen(names[i]);
        int there = 0;
        for (int j = 0; j < count; j++) there |= !strncmp(made[j], names[i], length) && made[j][length] == '=';
        if (kept[i][0] && !there) made[count++] = kept[i];
    }
    made[count] = NULL;
    return made;
}
int execve(const char *path, char *const argv[], char *const env[]) { REAL(execve); return real(path, argv, with(env)); }
int execvpe(const char *file, char *const argv[], char *const env[]) { REAL(execvpe); return real(file, argv, with(env)); }
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                char *const argv[], char *const env[]) {
    REAL(posix_spawn);
    return real(pid, path, actions, how, argv, with(env));
}
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
                 char *const argv[], char *const env[]) {
    REAL(posix_spawnp);
    return real(pid, file, actions, how, argv, with(env));
}
