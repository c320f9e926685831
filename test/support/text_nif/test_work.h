/* The number of steps that this thread has made through terms. */
#ifndef TEST_WORK_H
#define TEST_WORK_H

extern _Thread_local unsigned long test_work;

#endif
