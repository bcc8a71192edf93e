/* A disk that fails once a file appears: from then on nothing can be made safe any more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
    const char *trigger = getenv("LODESTAR_TEST_TRIGGER");
    return trigger != NULL && access(trigger, F_OK) == 0;
}

static int sync_by(const char *name, int fd) {
    if (fails()) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}

int fsync(int fd) { return sync_by("fsync", fd); }
int fdatasync(int fd) { return sync_by("fdatasync", fd); }
