"""Plain pickles, which `pickle.dump` and joblib write: tensors and arrays are bytes within the stream."""
