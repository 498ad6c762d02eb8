# A beat without a look does not see that another row is where its own was.
# in: extension
# red: isolation quick_heartbeat
s/ && is_like_image(&row, image) &&/ \&\&/
