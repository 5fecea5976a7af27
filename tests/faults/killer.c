/* Kills a program, or its whole process group, at the k-th point at which it changes a directory.
 *
 * Preloaded into git. Every call that makes, renames or removes a name counts twice, once before and once after it was done;
 * all programs of one operation count together, by the length of a file that each of them adds a byte to.
 *
 *   FAULT_COUNT   the file
 *   FAULT_AT      k; without it, points are only counted
 *   FAULT_SCOPE   `group` to kill the process group, anything else to kill the program alone
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void point(void)
{
	const char *count = getenv("FAULT_COUNT"), *at = getenv("FAULT_AT"), *scope = getenv("FAULT_SCOPE");
	long fd, here;

	if (!count)
		return;
	fd = syscall(SYS_openat, AT_FDCWD, count, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (syscall(SYS_write, fd, ".", 1) != 1)
		_exit(126);
	here = lseek(fd, 0, SEEK_CUR);
	syscall(SYS_close, fd);
	if (at && here == atol(at)) {
		kill(scope && !strcmp(scope, "group") ? 0 : getpid(), SIGKILL);
		for (;;)
			pause();
	}
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define COUNTED(declaration, name, ...)       \
	declaration                           \
	{                                     \
		int done;                     \
		point();                      \
		done = REAL(name)(__VA_ARGS__); \
		point();                      \
		return done;                  \
	}

COUNTED(int rename(const char *from, const char *to), rename, from, to)
COUNTED(int renameat(int a, const char *from, int b, const char *to), renameat, a, from, b, to)
COUNTED(int link(const char *from, const char *to), link, from, to)
COUNTED(int symlink(const char *to, const char *at), symlink, to, at)
COUNTED(int unlink(const char *path), unlink, path)
COUNTED(int unlinkat(int at, const char *path, int flags), unlinkat, at, path, flags)
COUNTED(int rmdir(const char *path), rmdir, path)
COUNTED(int mkdir(const char *path, mode_t mode), mkdir, path, mode)

#define OPENED(name)                                              \
	int name(const char *path, int flags, ...)                \
	{                                                         \
		int made = flags & O_CREAT, done;                 \
		mode_t mode = 0;                                  \
		va_list more;                                     \
		va_start(more, flags);                            \
		if (made)                                         \
			mode = va_arg(more, mode_t);              \
		va_end(more);                                     \
		if (made)                                         \
			point();                                  \
		done = REAL(name)(path, flags, mode);             \
		if (made)                                         \
			point();                                  \
		return done;                                      \
	}

OPENED(open)
OPENED(open64)
