/* A hot standby behind a lock, in C: loads its data, waits for the lock, and
 * says when it has committed its first write as the holder.
 *
 *   waiter flock|ofd|robust LOCKFILE PROBEFILE SLOT DATAFILE
 *
 * The probe file is laid out as probe.go says. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LEADER = 0, STAMP = 1, PAYLOAD = 8, SLOTS = 16, WORDS = 64 };

static int load(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return -1;
	char *data = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return -1;
	madvise(data, st.st_size, MADV_NOHUGEPAGE);
#ifdef MADV_POPULATE_WRITE
	madvise(data, st.st_size, MADV_POPULATE_WRITE);
#endif
	for (off_t n = 0; n < st.st_size;) {
		ssize_t got = read(fd, data + n, st.st_size - n);
		if (got <= 0)
			return -1;
		n += got;
	}
	return close(fd);
}

/* The first process makes the mutex; they are started one after the other. */
static pthread_mutex_t *mutex(const char *path)
{
	struct shared {
		int made;
		pthread_mutex_t lock;
	} *s;
	pthread_mutexattr_t a;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *s) != 0)
		return NULL;
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return NULL;
	if (!s->made) {
		pthread_mutexattr_init(&a);
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		if (pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) != 0 || pthread_mutex_init(&s->lock, &a) != 0)
			return NULL;
		s->made = 1;
	}
	return &s->lock;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 6)
		return 2;
	int fd = open(argv[3], O_RDWR | O_CLOEXEC);
	volatile uint64_t *probe = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || probe == MAP_FAILED)
		return 1;
	int robust = strcmp(argv[1], "robust") == 0, lock = -1;
	pthread_mutex_t *m = NULL;
	if (robust ? (m = mutex(argv[2])) == NULL : (lock = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
		return 1;
	if (load(argv[5]) != 0)
		return 1;
	probe[SLOTS + atoi(argv[4])] = getpid();

	int err;
	if (robust) {
		err = pthread_mutex_lock(m);
		if (err == EOWNERDEAD)
			err = pthread_mutex_consistent(m);
	} else if (strcmp(argv[1], "flock") == 0) {
		err = flock(lock, LOCK_EX);
	} else {
		struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
		err = fcntl(lock, F_OFD_SETLKW, &whole);
	}
	if (err != 0)
		return 1;

	struct timespec t;
	for (int i = 0; i < 6; i++)
		probe[PAYLOAD + i] = getpid();
	clock_gettime(CLOCK_MONOTONIC, &t);
	probe[LEADER] = getpid();
	probe[STAMP] = t.tv_sec * 1000000000ULL + t.tv_nsec;
	for (;;)
		pause();
}
