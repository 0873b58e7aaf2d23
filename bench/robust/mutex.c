#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct shared {
	int made; /* 1: the mutex is initialized */
	pthread_mutex_t lock;
};

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pair(struct shared *s)
{
	int err = pthread_mutex_lock(&s->lock);
	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&s->lock);
	if (err != 0 || pthread_mutex_unlock(&s->lock) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	char line[64];
	long long n;
	int fd;
	struct shared *s;
	pthread_mutexattr_t a;

	if (argc != 2 || (fd = open(argv[1], O_RDWR | O_CREAT, 0600)) < 0 || ftruncate(fd, sizeof *s) != 0)
		return 1;
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return 1;
	if (!s->made) { /* processes are started one after the other */
		pthread_mutexattr_init(&a);
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		if (pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) != 0 || pthread_mutex_init(&s->lock, &a) != 0)
			return 1;
		s->made = 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "n %lld", &n) == 1) {
			long long start = now();
			for (long long i = 0; i < n; i++)
				pair(s);
			printf("%lld\n", now() - start);
		} else if (sscanf(line, "for %lld", &n) == 1) {
			long long end = now() + n * 1000000, done = 0;
			while (now() < end)
				for (int i = 0; i < 100; i++, done++)
					pair(s);
			printf("%lld\n", done);
		}
	}
	return 0;
}
