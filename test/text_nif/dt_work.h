/* The steps that this thread has taken through terms. */
#ifndef DT_WORK_H
#define DT_WORK_H

extern _Thread_local unsigned long dt_work;

#endif
