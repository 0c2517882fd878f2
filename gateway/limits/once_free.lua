#!lua flags=allow-oom
-- Lets an idempotency key go: a running call's, which failed, or (without a request id) a done one's, which made room.
-- KEYS entry; ARGV request id
local entry = redis.call('HMGET', KEYS[1], 'r', 's')
if entry[2] == 'running' and entry[1] == ARGV[1] or entry[2] == 'done' and ARGV[1] == '' then
  return redis.call('DEL', KEYS[1])
end
return 0
