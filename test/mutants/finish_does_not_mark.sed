# The end of a job does not mark its queue.
# in: sql
# red: isolation promote_vs_finish
/^CREATE.* pulse.complete(/,/^END/ s/PERFORM pulse._note_queue(done.queue_name);//
