# A rolled-back savepoint does not put back the marks that were taken in it.
# file: extension/commit_callback.cpp
# red: isolation promote_vs_finish
s/^    return_taken();//
