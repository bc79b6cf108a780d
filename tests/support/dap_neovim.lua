-- A session driven by nvim-dap in the listing that is open. Writes lines of what it saw to the file SONNX_SEEN.
local dap = require("dap")
local seen = assert(io.open(assert(os.getenv("SONNX_SEEN")), "w"))

local function say(...)
  seen:write(table.concat(vim.tbl_map(tostring, { ... }), " ") .. "\n")
  seen:flush()
end

local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then
    say("waited in vain for", what)
    vim.cmd("cquit 3")
  end
end

local stops, told = 0, 0
dap.listeners.after.event_stopped["sonnx-test"] = function() stops = stops + 1 end

local function ask(command, arguments)
  local body, failed
  dap.session():request(command, arguments, function(err, answer) failed, body = err, answer or {} end)
  wait(command, function() return body end)
  return failed and { result = vim.inspect(failed) } or body
end

--- Does something that moves; the frames in which the execution stands then.
local function move(name, action)
  action()
  told = told + 1
  wait(name, function() return stops == told and dap.session() and dap.session().stopped_thread_id end)
  local frames = ask("stackTrace", { threadId = 1 }).stackFrames
  say(name, frames[1].line)
  return frames
end

say("filetype", vim.bo.filetype)
vim.fn.cursor(tonumber(os.getenv("SONNX_LINE")), 1)
dap.set_breakpoint()
move("entry", dap.continue)
local frame = move("continue", dap.continue)[1].id
say("value", ask("evaluate", { expression = "b", frameId = frame, context = "watch" }).result)
move("step_over", dap.step_over)
move("step_back", dap.step_back)
dap.clear_breakpoints()
move("end", dap.continue)
move("start", dap.reverse_continue)
dap.terminate()
wait("the end", function() return dap.session() == nil end)
say("over")
vim.cmd("qall!")
