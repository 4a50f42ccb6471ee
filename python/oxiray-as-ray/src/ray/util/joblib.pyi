from oxiray.util.joblib import *
