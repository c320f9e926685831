/* The steps that this thread has taken through terms. */
#ifndef TEST_WORK_H
#define TEST_WORK_H

extern _Thread_local unsigned long test_work;

#endif
