//! Stand-ins for what the module uses of Python: the loader looks all of it up when the module is loaded. Without an
//! interpreter, nothing calls or reads it. If the module uses more, `python/tests/test_command.py` fails with its name.

macro_rules! stand_ins {
    ($($name:ident)*) => {
        $(
            #[allow(non_upper_case_globals, reason = "the module looks for this name")]
            #[unsafe(no_mangle)]
            static $name: usize = 0;
        )*

        /// All of them: what nothing uses would be left out of the program.
        pub static STAND_INS: &[&usize] = &[$(&$name),*];
    };
}

stand_ins! {
    PyBaseObject_Type PyBool_Type PyByteArray_FromStringAndSize PyBytes_AsString PyBytes_Size PyCMethod_New
    PyCapsule_GetName PyCapsule_GetPointer PyCapsule_New PyCapsule_Type PyDict_New PyDict_SetItem
    PyErr_CheckSignals PyErr_Fetch PyErr_GivenExceptionMatches PyErr_NewExceptionWithDoc
    PyErr_NormalizeException PyErr_Occurred PyErr_PrintEx PyErr_Restore PyErr_SetObject
    PyErr_SetString PyErr_WriteUnraisable PyEval_RestoreThread PyEval_SaveThread
    PyExc_AttributeError PyExc_BaseException PyExc_BlockingIOError PyExc_BrokenPipeError
    PyExc_ConnectionAbortedError PyExc_ConnectionRefusedError PyExc_ConnectionResetError
    PyExc_FileExistsError PyExc_FileNotFoundError PyExc_ImportError PyExc_InterruptedError
    PyExc_IsADirectoryError PyExc_KeyboardInterrupt PyExc_MemoryError PyExc_NotADirectoryError
    PyExc_OSError PyExc_PermissionError PyExc_SystemError PyExc_TimeoutError PyExc_TypeError
    PyExc_ValueError PyException_GetTraceback PyFloat_AsDouble PyFloat_FromDouble PyGILState_Ensure
    PyGILState_Release PyImport_Import PyInterpreterState_Get PyInterpreterState_GetID PyIter_Next
    PyList_Append PyList_New PyList_SetItem PyList_Type PyLong_AsUnsignedLongLong
    PyLong_FromUnsignedLongLong PyLong_Type PyModuleDef_Init PyModule_Type PyNumber_Index
    PyObject_Call PyObject_CallNoArgs PyObject_GetAttr PyObject_GetIter PyObject_Repr
    PyObject_SetAttr PyObject_Size PyObject_Str PySequence_Check PyTraceBack_Print PyTuple_GetItem
    PyTuple_New PyTuple_SetItem PyTuple_Size PyTuple_Type PyType_GetFlags PyType_GetSlot
    PyType_IsSubtype PyType_Type PyUnicode_AsEncodedString PyUnicode_AsUTF8AndSize
    PyUnicode_FromStringAndSize PyUnicode_InternInPlace PyUnicode_Type Py_IsInitialized _Py_DecRef
    _Py_IncRef _Py_NoneStruct _Py_TrueStruct
}
