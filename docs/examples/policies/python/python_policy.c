/* Lets a policy be written in Python: a shared object that embeds the interpreter. The option of the
 * scenario is the path of the Python file, which defines score(request, servers).
 *
 *   cc -O2 -fPIC -shared $(python3-config --includes) -I../../../../sim/custom python_policy.c \
 *      -o python_policy.so $(python3-config --embed --ldflags)
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "routesim_policy.h"

uint32_t routesim_policy_abi(void) { return ROUTESIM_POLICY_ABI; }

/* The policy is the function `score`. */
void* routesim_policy_create(const char* options, uint64_t seed, uint32_t router) {
  (void)seed;
  (void)router;
  if (!Py_IsInitialized()) {
    Py_InitializeEx(0); /* Without Python's signal handlers. */
    PyEval_SaveThread();
  }
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* score = NULL;
  PyObject* globals = PyDict_New();
  FILE* file = fopen(options, "rb");
  if (file != NULL && globals != NULL) {
    PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins());
    PyObject* done = PyRun_FileEx(file, options, Py_file_input, globals, globals, 1);
    if (done != NULL) score = PyDict_GetItemString(globals, "score");
    Py_XDECREF(done);
    Py_XINCREF(score);
  }
  if (PyErr_Occurred()) PyErr_Print();
  Py_XDECREF(globals);
  PyGILState_Release(gil);
  return score;
}

void routesim_policy_destroy(void* policy) {
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF((PyObject*)policy);
  PyGILState_Release(gil);
}

static PyObject* list_of(const double* values, uint32_t count) {
  PyObject* list = PyList_New(count);
  for (uint32_t i = 0; i < count; ++i) PyList_SET_ITEM(list, i, PyFloat_FromDouble(values[i]));
  return list;
}

static int32_t read_scores(PyObject* answer, uint32_t count, double* scores) {
  PyObject* list = answer != NULL ? PySequence_Fast(answer, "score() must return a list") : NULL;
  int32_t result = -1;
  if (list != NULL && PySequence_Fast_GET_SIZE(list) == (Py_ssize_t)count) {
    for (uint32_t i = 0; i < count; ++i)
      scores[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(list, i));
    result = PyErr_Occurred() ? -1 : ROUTESIM_SCORED;
  }
  if (PyErr_Occurred()) PyErr_Print();
  Py_XDECREF(list);
  Py_XDECREF(answer);
  return result;
}

int32_t routesim_policy_score(void* policy, const routesim_request* r, const routesim_servers* s,
                              double* scores) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject* request = Py_BuildValue("{s:K,s:i,s:d,s:L,s:L}", "id", (unsigned long long)r->id,
                                    "priority", r->priority, "now_s", r->now_s, "prompt_tokens",
                                    (long long)r->prompt_tokens, "max_tokens",
                                    (long long)r->max_tokens);
  PyObject* servers = Py_BuildValue(
      "{s:N,s:N,s:N,s:N,s:N,s:N,s:N}", "waiting", list_of(s->waiting, s->count), "running",
      list_of(s->running, s->count), "kv_usage", list_of(s->kv_usage, s->count), "age_s",
      list_of(s->age_s, s->count), "in_flight", list_of(s->in_flight, s->count),
      "in_flight_tokens", list_of(s->in_flight_tokens, s->count), "prefix_tokens",
      list_of(s->prefix_tokens, s->count));
  const int32_t result = read_scores(
      PyObject_CallFunctionObjArgs((PyObject*)policy, request, servers, NULL), s->count, scores);
  Py_XDECREF(request);
  Py_XDECREF(servers);
  PyGILState_Release(gil);
  return result;
}
